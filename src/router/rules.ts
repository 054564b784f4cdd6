/**
 * What decides and folds, in one module: the code whose hash every commit names, and which a release archives under
 * that hash, so that any decision can be made again by the very code that made it.
 */
export { decide } from "./decide.ts"
export { decideReport } from "./decide-report.ts"
export { beginCommit, endCommit, fold, foldCommit, foldEntry, reportStanding } from "./fold.ts"
export { emptyState } from "./state.ts"
