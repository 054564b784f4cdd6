import { area, fn } from "./schema.ts"

export const graphArea = area("graph", "Graphs: making, edges, user objects.", [
  fn("CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags)"),
  fn("CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph)"),
  fn("CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)"),
  fn("CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes)"),
  fn("CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes)"),
  fn("CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges)"),
  fn(
    "CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edgeData, size_t* numEdges)"
  ),
  fn(
    "CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, size_t numDependencies)"
  ),
  fn(
    "CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edgeData, size_t numDependencies)"
  ),
  fn(
    "CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, size_t numDependencies)"
  ),
  fn(
    "CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edgeData, size_t numDependencies)"
  ),
  fn("CUresult cuGraphDestroyNode(CUgraphNode hNode)"),
  fn("CUresult cuGraphDestroy(CUgraph hGraph)"),
  fn("CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags)"),
  fn(
    "CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy, unsigned int initialRefcount, unsigned int flags)"
  ),
  fn("CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)"),
  fn("CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)"),
  fn("CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)"),
  fn("CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)")
])
