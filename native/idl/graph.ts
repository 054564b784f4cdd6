import { area, fn } from "./schema.ts"

export const graphArea = area("graph", "Graphs: making, edges, user objects.", [
  fn("CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags)", { class: "custom" }),
  fn("CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph)", { class: "custom" }),
  fn("CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)", {
    class: "custom"
  }),
  fn("CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes)", { class: "custom" }),
  fn("CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes)", { class: "custom" }),
  fn("CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges)", {
    class: "custom"
  }),
  fn(
    "CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edgeData, size_t* numEdges)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, size_t numDependencies)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edgeData, size_t numDependencies)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, size_t numDependencies)",
    { class: "custom" }
  ),
  fn(
    "CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edgeData, size_t numDependencies)",
    { class: "custom" }
  ),
  fn("CUresult cuGraphDestroyNode(CUgraphNode hNode)", { class: "custom" }),
  fn("CUresult cuGraphDestroy(CUgraph hGraph)", { class: "custom" }),
  fn("CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags)", { class: "custom" }),
  fn(
    "CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy, unsigned int initialRefcount, unsigned int flags)",
    { class: "custom" }
  ),
  fn("CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)", { class: "custom" }),
  fn("CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)", { class: "custom" }),
  fn("CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)", {
    class: "custom"
  }),
  fn("CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)", { class: "custom" })
])
