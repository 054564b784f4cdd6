import { area, fn } from "./schema.ts"

export const occupancyArea = area("occupancy", "How many blocks fit.", [
  fn(
    "CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)",
    { class: "cached", as: "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" }
  ),
  fn(
    "CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)",
    { class: "cached", args: { numBlocks: "out" } }
  ),
  fn(
    "CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit)",
    { class: "local" }
  ),
  fn(
    "CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags)",
    { class: "local" }
  ),
  fn(
    "CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)",
    { class: "cached", args: { dynamicSmemSize: "out" } }
  ),
  fn("CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func, const CUlaunchConfig* config)", {
    class: "cached",
    args: { clusterSize: "out", config: "config" }
  }),
  fn("CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func, const CUlaunchConfig* config)", {
    class: "cached",
    args: { numClusters: "out", config: "config" }
  })
])
