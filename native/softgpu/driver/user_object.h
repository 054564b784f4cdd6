// User objects: something of the program's that graphs keep alive.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "native/abi/cuda_abi.h"

namespace juice::softgpu {

/// When the last reference is gone, the program's function runs on a thread of the driver's. Until
/// then it is in the registry, which is its handle.
class UserObject {
  public:
    UserObject(void* pointer, CUhostFn destroy, unsigned references)
        : pointer_(pointer), destroy_(destroy), references_(references) {}
    ~UserObject();
    UserObject(const UserObject&) = delete;
    UserObject& operator=(const UserObject&) = delete;

    void retain(unsigned count) { references_ += count; }
    /// False when there are not so many.
    bool release(unsigned count);

  private:
    void* pointer_;
    CUhostFn destroy_;
    std::atomic<unsigned> references_;
};

/// One reference that a graph has; copies of the graph share it.
class UserReference {
  public:
    /// Takes over a reference that is counted already.
    explicit UserReference(std::shared_ptr<UserObject> object) : object_(std::move(object)) {}
    ~UserReference() { object_->release(1); }
    UserReference(const UserReference&) = delete;
    UserReference& operator=(const UserReference&) = delete;

    const UserObject* object() const { return object_.get(); }

  private:
    std::shared_ptr<UserObject> object_;
};

}  // namespace juice::softgpu
