/**
 * Encoding of payloads as native/link/codec.h writes them: little-endian scalars, and bytes after a u32 length.
 *
 * The reader never reads past its buffer: after the first short read every further read yields zeros and `ok` is
 * false, so a decoder checks once, at the end, before it acts.
 */
export class Writer {
  readonly #parts: Array<Buffer> = []

  #scalar(size: number, write: (part: Buffer) => void): this {
    const part = Buffer.alloc(size)
    write(part)
    this.#parts.push(part)
    return this
  }
  u8(value: number): this {
    return this.#scalar(1, (part) => part.writeUInt8(value))
  }
  u16(value: number): this {
    return this.#scalar(2, (part) => part.writeUInt16LE(value))
  }
  u32(value: number): this {
    return this.#scalar(4, (part) => part.writeUInt32LE(value))
  }
  i32(value: number): this {
    return this.#scalar(4, (part) => part.writeInt32LE(value))
  }
  u64(value: bigint | number): this {
    return this.#scalar(8, (part) => part.writeBigUInt64LE(BigInt(value)))
  }
  /** u32 length, then the bytes. */
  bytes(value: Uint8Array): this {
    return this.u32(value.length).raw(value)
  }
  /** UTF-8, as bytes. */
  text(value: string): this {
    return this.bytes(Buffer.from(value))
  }
  /** Bytes without a length: the reader must know how many. */
  raw(value: Uint8Array): this {
    this.#parts.push(Buffer.from(value))
    return this
  }
  done(): Buffer {
    return Buffer.concat(this.#parts)
  }
}

export class Reader {
  readonly #buffer: Buffer
  #at = 0
  #ok = true

  constructor(buffer: Uint8Array) {
    this.#buffer = Buffer.from(buffer.buffer, buffer.byteOffset, buffer.byteLength)
  }

  /** `size` bytes without a length prefix; empty, and `ok` false, when they are not there. */
  take(size: number): Buffer {
    if (!this.#ok || this.#at + size > this.#buffer.length) {
      this.#ok = false
      return Buffer.alloc(0)
    }
    this.#at += size
    return this.#buffer.subarray(this.#at - size, this.#at)
  }
  #scalar<T>(size: number, zero: T, read: (part: Buffer) => T): T {
    const part = this.take(size)
    return part.length === size ? read(part) : zero
  }
  u8(): number {
    return this.#scalar(1, 0, (part) => part.readUInt8())
  }
  u16(): number {
    return this.#scalar(2, 0, (part) => part.readUInt16LE())
  }
  u32(): number {
    return this.#scalar(4, 0, (part) => part.readUInt32LE())
  }
  i32(): number {
    return this.#scalar(4, 0, (part) => part.readInt32LE())
  }
  u64(): bigint {
    return this.#scalar(8, 0n, (part) => part.readBigUInt64LE())
  }
  bytes(): Buffer {
    return this.take(this.u32())
  }
  text(): string {
    return this.bytes().toString("utf8")
  }
  /** Where the next read begins. */
  get offset(): number {
    return this.#at
  }
  get ok(): boolean {
    return this.#ok
  }
  /** True when everything was read and nothing is left: what a strict decoder asks last. */
  get done(): boolean {
    return this.#ok && this.#at === this.#buffer.length
  }
}
