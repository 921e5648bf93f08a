// SPDX-License-Identifier: Apache-2.0
// Driver entries: copies, in one, two and three dimensions.
#include <cstring>

#include "tests/fake_cuda/memory.hpp"
#include "tests/fake_cuda/stream.hpp"

using namespace fake;
namespace abi = bestride::cuda;

namespace {

/// Rows of one copy, as the work needs them.
struct Rows {
  Address source, target;
  std::size_t width, height, depth;
  std::size_t source_pitch, source_plane, target_pitch, target_plane;
};

Code copy_rows(const Rows& rows, Context* context) {
  if (const Code failed = running("copy")) return failed;
  const std::shared_lock lock(memory_mutex());
  for (std::size_t z = 0; z < rows.depth; ++z)
    for (std::size_t y = 0; y < rows.height; ++y) {
      const unsigned char* from =
          reach_for_copy(rows.source + z * rows.source_plane + y * rows.source_pitch, rows.width, context);
      unsigned char* to =
          reach_for_copy(rows.target + z * rows.target_plane + y * rows.target_pitch, rows.width, context);
      if (!from || !to) return code::illegal_address;
      std::memmove(to, from, rows.width);
    }
  return code::success;
}

Code enqueue(const char* entry, const Rows& rows, const void* handle, bool wait) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context(entry, &context)) return failed;
  if (rows.width == 0 || rows.height == 0 || rows.depth == 0) return code::success;
  if (rows.width > rows.source_pitch || rows.width > rows.target_pitch) return code::invalid_value;
  Stream* stream = stream_of(handle, context);
  if (!stream) return code::invalid_handle;
  Work work = [rows, context] { return copy_rows(rows, context); };
  if (stream->capturing) {
    stream->captured.push_back(std::move(work));
    return code::success;
  }
  const Mark mark = submit(stream, std::move(work));
  if (!wait) return code::success;
  wait_for(mark);
  return context->spoilt;
}

Rows line(Address target, Address source, std::size_t size) {
  return {source, target, size, 1, 1, size, size, size, size};
}
Address of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

Code cuMemcpyHtoD_v2(Address target, const void* source, std::size_t size) {
  return enqueue("cuMemcpyHtoD_v2", line(target, of(source), size), nullptr, true);
}
Code cuMemcpyDtoH_v2(void* target, Address source, std::size_t size) {
  return enqueue("cuMemcpyDtoH_v2", line(of(target), source, size), nullptr, true);
}
Code cuMemcpyDtoD_v2(Address target, Address source, std::size_t size) {
  return enqueue("cuMemcpyDtoD_v2", line(target, source, size), nullptr, false);  // does not wait, as the driver
}
Code cuMemcpy(Address target, Address source, std::size_t size) {
  return enqueue("cuMemcpy", line(target, source, size), nullptr, true);
}
Code cuMemcpyHtoDAsync_v2(Address target, const void* source, std::size_t size, void* stream) {
  return enqueue("cuMemcpyHtoDAsync_v2", line(target, of(source), size), stream, false);
}
Code cuMemcpyDtoHAsync_v2(void* target, Address source, std::size_t size, void* stream) {
  return enqueue("cuMemcpyDtoHAsync_v2", line(of(target), source, size), stream, false);
}
Code cuMemcpyDtoDAsync_v2(Address target, Address source, std::size_t size, void* stream) {
  return enqueue("cuMemcpyDtoDAsync_v2", line(target, source, size), stream, false);
}
Code cuMemcpyAsync(Address target, Address source, std::size_t size, void* stream) {
  return enqueue("cuMemcpyAsync", line(target, source, size), stream, false);
}

Code cuMemcpy2DAsync_v2(const abi::Copy2D* copy, void* stream) {
  const Address source = copy->source_type == abi::memory_type::host ? of(copy->source_host) : copy->source_device;
  const Address target = copy->target_type == abi::memory_type::host ? of(copy->target_host) : copy->target_device;
  return enqueue("cuMemcpy2DAsync_v2",
                 {source + copy->source_y * copy->source_pitch + copy->source_x,
                  target + copy->target_y * copy->target_pitch + copy->target_x, copy->width, copy->height, 1,
                  copy->source_pitch, 0, copy->target_pitch, 0},
                 stream, false);
}

Code cuMemcpy3DAsync_v2(const abi::Copy3D* copy, void* stream) {
  if (copy->source_height < copy->height || copy->target_height < copy->height) return code::invalid_value;
  const Address source = copy->source_type == abi::memory_type::host ? of(copy->source_host) : copy->source_device;
  const Address target = copy->target_type == abi::memory_type::host ? of(copy->target_host) : copy->target_device;
  const std::size_t source_plane = copy->source_pitch * copy->source_height,
                    target_plane = copy->target_pitch * copy->target_height;
  return enqueue(
      "cuMemcpy3DAsync_v2",
      {source + copy->source_z * source_plane + copy->source_y * copy->source_pitch + copy->source_x,
       target + copy->target_z * target_plane + copy->target_y * copy->target_pitch + copy->target_x, copy->width,
       copy->height, copy->depth, copy->source_pitch, source_plane, copy->target_pitch, target_plane},
      stream, false);
}

Code cuMemsetD8Async(Address target, unsigned char value, std::size_t size, void* handle) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuMemsetD8Async", &context)) return failed;
  Stream* stream = stream_of(handle, context);
  if (!stream) return code::invalid_handle;
  submit(stream, [=] {
    const std::shared_lock lock(memory_mutex());
    unsigned char* bytes = reach_for_copy(target, size, context);
    if (!bytes) return code::illegal_address;
    std::memset(bytes, value, size);
    return code::success;
  });
  return code::success;
}
Code cuMemsetD8_v2(Address target, unsigned char value, std::size_t size) {
  return cuMemsetD8Async(target, value, size, nullptr);
}

#pragma GCC visibility pop
}
