// Stream capture: streams whose work becomes nodes of a graph instead of running.
#pragma once

#include <memory>
#include <vector>

#include "native/abi/cuda_abi.h"
#include "native/softgpu/driver/graph.h"
#include "native/softgpu/driver/operation.h"
#include "native/softgpu/driver/stream.h"

namespace juice::softgpu {

class Capture;
class Event;

/// A place in a capture: what an event that was recorded there stands for.
struct CapturedPlace {
    std::shared_ptr<Capture> capture;
    std::vector<Edge> dependencies;
};

/// Gives an operation to a stream: it runs in the stream's order or, while the stream is captured,
/// becomes a node.
CUresult submit(Stream& stream, OperationPtr operation);

bool isCapturing(const Stream& stream);

// What calls that do more than to submit operations ask first. Each answers CUDA_SUCCESS when no
// capture objects; an objection invalidates the captures concerned.

/// For everything that uses a stream: 906 on the legacy stream while a blocking stream of its
/// context is captured, 901 on a stream of an invalidated capture.
CUresult refuseUse(Stream& stream);
/// For what cannot be captured: besides, 900 on a captured stream.
CUresult refuseCaptured(Stream& stream);
/// For what waits for a whole context: 900 while one of its streams is captured.
CUresult refuseSynchronize(const Context& context);
/// For what no capture would notice, such as allocations: 900 while the calling thread's capture
/// mode forbids it.
CUresult refuseUnsafe();
/// For questions to an event that was last recorded in a capture: 907.
CUresult refuseQuestion(const Event& event);

/// Records an event: in a captured stream as a place in the capture or, `external`, as a node.
CUresult recordEvent(Stream& stream, const std::shared_ptr<Event>& event, bool external);
/// Makes later work of a stream wait for an event, which may draw the stream into the event's
/// capture.
CUresult waitEvent(Stream& stream, const std::shared_ptr<Event>& event, bool external);

/// `graph`: an existing graph to add to, or null for a new one.
CUresult beginCapture(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                      std::vector<Edge> dependencies);
/// The graph is null when the capture was not a good one.
CUresult endCapture(Stream& stream, CUgraph* graph);

/// What is told of a stream. The arrays stay valid until the stream is used again.
struct CaptureInfo {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned long long id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* dependencies = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    size_t count = 0;
    bool lossy = false;  // some edge has data
};
/// 906 on the legacy stream while a blocking stream of its context is captured; invalidates
/// nothing.
CUresult captureInfo(Stream& stream, CaptureInfo& info);
/// The graph that a captured stream adds to; null when it is not captured, or not any more.
Graph* capturedGraph(const Stream& stream);
/// Adds to what the stream's next node depends on, or replaces it.
CUresult updateCapture(Stream& stream, const std::vector<Edge>& dependencies, bool replace);

/// The calling thread's mode.
CUstreamCaptureMode& captureMode();

/// A node, a stream or a context is about to end.
void captureForgets(const Node& node);
void captureForgets(const Stream& stream);
void captureForgets(const Context& context);

}  // namespace juice::softgpu
