// SPDX-License-Identifier: Apache-2.0
// Driver entries: streams, events, modules, launches, graphs.
#include <cstring>
#include <memory>

#include "tests/fake_cuda/kernels.hpp"
#include "tests/fake_cuda/stream.hpp"

using namespace fake;
namespace abi = bestride::cuda;

namespace {

struct Module {
  Context* context;
};
struct Kernel {
  Function function;
  Context* context;
};
struct Graph {
  std::vector<Work> work;
};

/// The event of a handle, if it is valid in the current context.
Code event_of(void* handle, const char* entry, Context** context, Event** event) {
  if (const Code failed = entered_with_context(entry, context)) return failed;
  *event = static_cast<Event*>(handle);
  if (!*event || (*event)->destroyed || (*event)->context != *context) return code::invalid_handle;
  return code::success;
}

Mark mark_of(Event* event) {
  const std::lock_guard lock(event->mutex);
  return event->mark;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

Code cuStreamCreate(void** stream, unsigned flags) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuStreamCreate", &context)) return failed;
  *stream = make_stream(context, flags & abi::stream_non_blocking ? StreamKind::non_blocking : StreamKind::blocking);
  ++state().live;
  return code::success;
}

Code cuStreamDestroy_v2(void* handle) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuStreamDestroy_v2", &context)) return failed;
  Stream* stream = stream_of(handle, context);
  if (!stream || stream->kind == StreamKind::legacy) return code::invalid_handle;
  retire_stream(stream);
  --state().live;
  return code::success;
}

Code cuStreamSynchronize(void* handle) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuStreamSynchronize", &context)) return failed;
  Stream* stream = stream_of(handle, context);
  if (!stream) return code::invalid_handle;
  wait_for(last_of(stream));
  return stream->context->spoilt;
}

Code cuStreamQuery(void* handle) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuStreamQuery", &context)) return failed;
  Stream* stream = stream_of(handle, context);
  if (!stream) return code::invalid_handle;
  return passed(last_of(stream)) ? context->spoilt.load() : code::not_ready;
}

Code cuStreamWaitEvent(void* handle, void* event_handle, unsigned) {
  Context* context = nullptr;
  Event* event = nullptr;
  if (const Code failed = event_of(event_handle, "cuStreamWaitEvent", &context, &event)) return failed;
  Stream* stream = stream_of(handle, context);
  if (!stream) return code::invalid_handle;
  submit(stream, nullptr, {mark_of(event)});
  return code::success;
}

Code cuEventCreate(void** event, unsigned) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuEventCreate", &context)) return failed;
  auto* made = kept(new Event);
  made->context = context;
  *event = made;
  ++state().live;
  return code::success;
}

Code cuEventDestroy_v2(void* handle) {
  Context* context = nullptr;
  Event* event = nullptr;
  if (const Code failed = event_of(handle, "cuEventDestroy_v2", &context, &event)) return failed;
  event->destroyed = true;
  --state().live;
  return code::success;
}

Code cuEventRecord(void* handle, void* stream_handle) {
  Context* context = nullptr;
  Event* event = nullptr;
  if (const Code failed = event_of(handle, "cuEventRecord", &context, &event)) return failed;
  Stream* stream = stream_of(stream_handle, context);
  if (!stream || stream->context != context) return code::invalid_handle;
  const Mark mark = submit(stream, nullptr);
  const std::lock_guard lock(event->mutex);
  event->mark = mark;
  return code::success;
}

Code cuEventQuery(void* handle) {
  Context* context = nullptr;
  Event* event = nullptr;
  if (const Code failed = event_of(handle, "cuEventQuery", &context, &event)) return failed;
  return passed(mark_of(event)) ? context->spoilt.load() : code::not_ready;
}

Code cuEventSynchronize(void* handle) {
  Context* context = nullptr;
  Event* event = nullptr;
  if (const Code failed = event_of(handle, "cuEventSynchronize", &context, &event)) return failed;
  wait_for(mark_of(event));
  return context->spoilt;
}

/// Always 1 ms, so that no time measured on the stand-in looks like performance.
Code cuEventElapsedTime_v2(float* milliseconds, void* first, void* second) {
  Context* context = nullptr;
  for (void* handle : {first, second}) {
    Event* event = nullptr;
    if (const Code failed = event_of(handle, "cuEventElapsedTime_v2", &context, &event)) return failed;
    if (!passed(mark_of(event))) return code::not_ready;
  }
  *milliseconds = 1;
  return code::success;
}
Code cuEventElapsedTime(float* milliseconds, void* first, void* second) {
  return cuEventElapsedTime_v2(milliseconds, first, second);
}

Code cuModuleLoadData(void** module, const void* image) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuModuleLoadData", &context)) return failed;
  // A fatbin, or its substitute in a build without nvcc. In both cases the kernels that run are those of this library.
  constexpr unsigned char fatbin[] = {0x50, 0xED, 0x55, 0xBA};
  if (std::memcmp(image, fatbin, sizeof fatbin) != 0 &&
      std::strncmp(static_cast<const char*>(image), "bestride", 8) != 0)
    return code::invalid_image;
  *module = kept(new Module{context});
  return code::success;
}

Code cuModuleUnload(void* module) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuModuleUnload", &context)) return failed;
  return static_cast<Module*>(module)->context == context ? code::success : code::invalid_handle;
}

Code cuModuleGetFunction(void** function, void* module, const char* name) {
  if (const Code failed = entered("cuModuleGetFunction")) return failed;
  const Function found = function_named(name);
  if (!found.name) return code::not_found;
  *function = kept(new Kernel{found, static_cast<Module*>(module)->context});
  return code::success;
}

Code cuLaunchKernel(void* function, unsigned grid, unsigned grid_y, unsigned grid_z, unsigned block, unsigned block_y,
                    unsigned block_z, unsigned shared_bytes, void* handle, void** parameters, void** extra) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuLaunchKernel", &context)) return failed;
  const auto* kernel = static_cast<const Kernel*>(function);
  const bool fits = kernel->function.exported ? block >= 1 && block <= 1024 : block == 256;
  if (grid == 0 || grid_y != 1 || grid_z != 1 || !fits || block_y != 1 || block_z != 1 || shared_bytes != 0 || extra)
    return code::invalid_value;
  Stream* stream = stream_of(handle, context);
  if (!stream || kernel->context != context || stream->context != context) return code::invalid_handle;
  // The caller's parameters are valid only until the call returns.
  auto kept = std::make_shared<std::vector<std::uint64_t>>((kernel->function.parameter_bytes + 7) / 8);
  std::memcpy(kept->data(), parameters[0], kernel->function.parameter_bytes);
  Work work = [=]() -> Code {
    if (const Code failed = running("kernel")) return failed;
    return run_kernel(kernel->function, kept->data(), grid, block, context);
  };
  if (stream->capturing)
    stream->captured.push_back(std::move(work));
  else
    submit(stream, std::move(work));
  return code::success;
}

Code cuStreamBeginCapture_v2(void* handle, int) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuStreamBeginCapture_v2", &context)) return failed;
  Stream* stream = stream_of(handle, context);
  if (!stream || stream->kind == StreamKind::legacy || stream->capturing) return code::invalid_handle;
  stream->capturing = true;
  stream->captured.clear();
  return code::success;
}

Code cuStreamEndCapture(void* handle, void** graph) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuStreamEndCapture", &context)) return failed;
  Stream* stream = stream_of(handle, context);
  if (!stream || !stream->capturing) return code::invalid_handle;
  stream->capturing = false;
  *graph = kept(new Graph{std::move(stream->captured)});
  return code::success;
}

Code cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  if (const Code failed = entered("cuGraphInstantiateWithFlags")) return failed;
  *exec = kept(new Graph(*static_cast<Graph*>(graph)));
  ++state().live;
  return code::success;
}

Code cuGraphLaunch(void* exec, void* handle) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuGraphLaunch", &context)) return failed;
  Stream* stream = stream_of(handle, context);
  if (!stream) return code::invalid_handle;
  for (const Work& work : static_cast<Graph*>(exec)->work) submit(stream, work);
  return code::success;
}

Code cuGraphDestroy(void* graph) {
  static_cast<Graph*>(graph)->work.clear();
  return code::success;
}

Code cuGraphExecDestroy(void* exec) {
  static_cast<Graph*>(exec)->work.clear();
  --state().live;
  return code::success;
}

#pragma GCC visibility pop
}
