#include "native/addon/addon.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace juice::addon {

Napi::Error errorWithCode(Napi::Env env, const std::string& code, const std::string& message) {
    Napi::Error error = Napi::Error::New(env, message);
    error.Set("code", Napi::String::New(env, code));
    return error;
}

Napi::Error systemError(Napi::Env env, const std::string& what, int error) {
    const char* name = strerrorname_np(error);
    return errorWithCode(env, name == nullptr ? "EUNKNOWN" : name,
                         what + ": " + std::strerror(error));
}

namespace {

Napi::Value closeFd(const Napi::CallbackInfo& info) {
    close(info[0].As<Napi::Number>().Int32Value());
    return info.Env().Undefined();
}

Napi::Value peerCredentials(const Napi::CallbackInfo& info) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(info[0].As<Napi::Number>().Int32Value(), SOL_SOCKET, SO_PEERCRED, &peer,
                   &size) != 0)
        throw systemError(info.Env(), "SO_PEERCRED", errno);
    Napi::Object out = Napi::Object::New(info.Env());
    out.Set("pid", Napi::Number::New(info.Env(), peer.pid));
    out.Set("uid", Napi::Number::New(info.Env(), peer.uid));
    out.Set("gid", Napi::Number::New(info.Env(), peer.gid));
    return out;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    registerInventory(env, exports);
    registerAcceptor(env, exports);
    registerWorkers(env, exports);
    registerProcessWatch(env, exports);
    exports.Set("closeFd", Napi::Function::New(env, closeFd));
    exports.Set("peerCredentials", Napi::Function::New(env, peerCredentials));
    return exports;
}

NODE_API_MODULE(juice, init)

}  // namespace
}  // namespace juice::addon
