// SPDX-License-Identifier: Apache-2.0
// The MPI calls of datatype/, which count the handles that are obtained and freed.
#include <dlfcn.h>

#include <atomic>

#include "tests/fuzz/checks.hpp"

namespace bestride::test {
namespace {

std::atomic<long> held{0};

bool derived(MPI_Datatype type) {
  MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
  int combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope_c(type, &integers, &addresses, &large, &types, &combiner);
  return combiner != MPI_COMBINER_NAMED;
}

int get_contents(MPI_Datatype type, int integers, int addresses, int types, int* i, MPI_Aint* a, MPI_Datatype* t) {
  const int code = PMPI_Type_get_contents(type, integers, addresses, types, i, a, t);
  for (int n = 0; n < types && code == MPI_SUCCESS; ++n) held += derived(t[n]) ? 1 : 0;
  return code;
}

int get_contents_c(MPI_Datatype type, MPI_Count integers, MPI_Count addresses, MPI_Count large, MPI_Count types, int* i,
                   MPI_Aint* a, MPI_Count* c, MPI_Datatype* t) {
  const int code = PMPI_Type_get_contents_c(type, integers, addresses, large, types, i, a, c, t);
  for (MPI_Count n = 0; n < types && code == MPI_SUCCESS; ++n) held += derived(t[n]) ? 1 : 0;
  return code;
}

int free_type(MPI_Datatype* type) {
  --held;
  return PMPI_Type_free(type);
}

DatatypeCalls make() {
  DatatypeCalls calls;
  calls.resolve([](const char* symbol) { return dlsym(RTLD_DEFAULT, symbol); });
  calls.get_contents = get_contents;
  if (calls.get_contents_c) calls.get_contents_c = get_contents_c;
  calls.free = free_type;
  return calls;
}

}  // namespace

const DatatypeCalls& counted_calls() {
  static const DatatypeCalls calls = make();
  return calls;
}

long handles_held() { return held; }

}  // namespace bestride::test
