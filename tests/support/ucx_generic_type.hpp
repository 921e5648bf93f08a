// SPDX-License-Identifier: Apache-2.0
#pragma once
// What UCX 1 keeps of a generic datatype, which ucp_dt_create_generic() makes: for tests that stand between the MPI
// library and UCX.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

struct UcxOperations {
  void* (*start_pack)(void*, const void*, std::size_t);
  void* (*start_unpack)(void*, void*, std::size_t);
  std::size_t (*packed_size)(void*);
  std::size_t (*pack)(void*, std::size_t, void*, std::size_t);
  signed char (*unpack)(void*, std::size_t, const void*, std::size_t);
  void (*finish)(void*);
};
struct UcxGenericType {
  void* context;
  UcxOperations operations;
};
/// `type`: the handle that UCX returns.
inline UcxGenericType& generic_type(std::uint64_t type) {
  return *reinterpret_cast<UcxGenericType*>(static_cast<std::uintptr_t>(type & ~std::uint64_t{7}));
}
/// UCX's ucp_dt_create_generic(), behind one of the program's own.
inline signed char create_in_ucx(const UcxOperations* operations, void* context, std::uint64_t* type) {
  using Create = signed char (*)(const UcxOperations*, void*, std::uint64_t*);
  static const auto real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "ucp_dt_create_generic"));
  return real(operations, context, type);
}
