/**
 * Times and sizes that both ends of a conversation must agree on. Times are milliseconds, sizes bytes.
 */

/** A commit's whole body. */
export const MAX_COMMIT_BYTES = 64 * 1024
/**
 * A command's or report's body. A decision repeats what it was made on in its events, and must still fit into one
 * commit.
 */
export const MAX_MESSAGE_BYTES = 16 * 1024

/** A host sends a heartbeat this often; three in a row missed make it suspect, a silence of HOST_UNKNOWN unknown. */
export const HEARTBEAT_INTERVAL = 1_000
export const HOST_SUSPECT = 3_000
export const HOST_UNKNOWN = 10_000

/**
 * The leader holds the answer to a session.request until the session is ready or has ended, but no longer than this;
 * then it answers with the session's present state and the client asks again with the same ids.
 */
export const REQUEST_PATIENCE = 1_500
/**
 * A client's time limit for one answer: the patience, and a margin for a busy router. Short, because whoever asks a
 * leader that dies meanwhile asks its successor only after this.
 */
export const REQUEST_TIMEOUT = 3_000
/** A queued session whose client has not asked again for this long is cancelled: its client is gone. */
export const QUEUE_LEASE = 15_000
/** The time limit of a question that a replica answers at once. */
export const READ_TIMEOUT = 3_000

/** A host answers prepare and release within this. */
export const PREPARE_TIMEOUT = 5_000
export const RELEASE_TIMEOUT = 5_000
/** A prepared session that no client has connected to for this long is given up by its host. */
export const PREPARED_SLOT = 30_000
/** A host that refused or did not answer is left out of a session's next attempts for this long. */
export const HOST_BACKOFF = 10_000

/** The leader's lease: its bucket's time to live, and how often the leader renews it. */
export const LEASE_TTL = 3_000
export const LEASE_RENEW = 1_000

/** Commands that may wait for the leader; beyond it the answer is Busy. */
export const MAX_WAITING_COMMANDS = 1_024
/** The longest wait in the queue that a client may ask for. */
export const MAX_WAIT = 7 * 24 * 3_600 * 1_000
/** The most GPUs of one session: they are on one host. */
export const MAX_GPUS = 64
/** Items of one page of a list. */
export const MAX_PAGE = 500
