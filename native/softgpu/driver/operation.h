// One thing that a stream or a graph can be asked to do: checked when it was made, complete in
// itself, and able to run any number of times.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "native/abi/cuda_abi.h"

namespace juice::softgpu {

class Context;
class Event;

/// What remains to be done when the turn of a submitted operation has come. May be empty.
using Work = std::function<void()>;

class Operation : public std::enable_shared_from_this<Operation> {
  public:
    Operation() = default;
    Operation(const Operation&) = default;
    Operation& operator=(const Operation&) = delete;
    virtual ~Operation() = default;

    /// What it is as a node of a graph.
    virtual CUgraphNodeType type() const = 0;
    /// The context that it runs in and whose failure stops it; null for none.
    virtual Context* context() const { return nullptr; }
    /// May it wait for something that other work of the same graph, or the program, must do first?
    virtual bool mayBlock() const { return false; }
    /// Does it run even when the context has failed?
    virtual bool always() const { return false; }
    /// Called at each submission, in the order of submissions: here is decided what depends on the
    /// moment.
    virtual Work bind() const {
        return [self = shared_from_this()] { self->run(); };
    }

  protected:
    virtual void run() const {}
};

using OperationPtr = std::shared_ptr<const Operation>;

/// Nothing; for the order of others.
class EmptyOperation : public Operation {
  public:
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_EMPTY; }
    Work bind() const override { return {}; }
};

/// Runs a function of the program, in which it may not call CUDA.
void callHost(const std::function<void()>& function);

class HostOperation : public Operation {
  public:
    explicit HostOperation(const CUDA_HOST_NODE_PARAMS& call) : call_(call) {}
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_HOST; }
    bool mayBlock() const override { return true; }
    const CUDA_HOST_NODE_PARAMS& call() const { return call_; }

  protected:
    void run() const override;

  private:
    CUDA_HOST_NODE_PARAMS call_;
};

/// Records an event at its place in a graph: from the launch on the event stands for this place.
class EventRecordOperation : public Operation {
  public:
    explicit EventRecordOperation(std::shared_ptr<Event> event) : event_(std::move(event)) {}
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    bool always() const override { return true; }
    Work bind() const override;
    CUevent event() const { return reinterpret_cast<CUevent>(event_.get()); }

  private:
    std::shared_ptr<Event> event_;
};

/// Waits for what the event stood for when the graph was launched.
class EventWaitOperation : public Operation {
  public:
    explicit EventWaitOperation(std::shared_ptr<Event> event) : event_(std::move(event)) {}
    CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    bool mayBlock() const override { return true; }
    Work bind() const override;
    CUevent event() const { return reinterpret_cast<CUevent>(event_.get()); }

  private:
    std::shared_ptr<Event> event_;
};

}  // namespace juice::softgpu
