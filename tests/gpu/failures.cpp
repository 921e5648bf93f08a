// SPDX-License-Identifier: Apache-2.0
// Driver calls fail, once or permanently: the message still arrives, or the call returns an MPI error through the
// communicator's handler. There are never wrong bytes, a hang or the end of the process. The arguments are failures in
// the form of FAKE_CUDA_FAIL; commas separate failures that are injected one after the other. One rank that sends to
// itself. "spoilt": the failure leaves the device unusable, and the single message must fail.
#include <array>
#include <cstdio>
#include <cstring>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

int failures = 0, errors = 0, delivered = 0, handled = 0;
std::string current;

void wrong(const char* what) {
  ++failures;
  std::fprintf(stderr, "%s: %s\n", current.c_str(), what);
}

void fail(const char* specification) { driver_entry_as<void (*)(const char*)>("fake_cuda_fail")(specification); }

void on_error(MPI_Comm*, int*, ...) { ++handled; }

bool same(TypedData& in, const Buffer& expected) {
  in.fetch();
  return !in.buffer().difference(expected);
}

/// Checks the result of a call that sends `out` to `in` and returned `error`.
void judge(int error, int handled_before, TypedData& out, TypedData& in) {
  fail("");
  if (error != MPI_SUCCESS) {
    ++errors;
    if (handled == handled_before) wrong("an error without a call of the communicator's handler");
    return;
  }
  Buffer expected = in.buffer();
  expected.scatter(in.runs(), out.packed());
  ++delivered;
  if (!same(in, expected)) wrong("success, but the received bytes differ");
}

void blocking(const char* what, const char* type, MPI_Comm comm) {
  TypedData out(type, 1, 1), in(type, 1, 2);
  void *from = out.address(), *to = in.address();
  const int before = handled;
  fail(what);
  const int error = MPI_Sendrecv(from, 1, out.type(), 0, 0, to, 1, in.type(), 0, 0, comm, MPI_STATUS_IGNORE);
  judge(error, before, out, in);
}

void nonblocking(const char* what, const char* type, MPI_Comm comm) {
  TypedData out(type, 1, 1), in(type, 1, 2);
  void *from = out.address(), *to = in.address();
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[2];
  const int before = handled;
  fail(what);
  int error = MPI_Irecv(to, 1, in.type(), 0, 0, comm, &requests[0]);
  if (error == MPI_SUCCESS) error = MPI_Isend(from, 1, out.type(), 0, 0, comm, &requests[1]);
  if (error == MPI_SUCCESS) {
    error = MPI_Waitall(2, requests, statuses);
    if (error != MPI_SUCCESS && error_class(error) != MPI_ERR_IN_STATUS)
      wrong("MPI_Waitall returned an error other than MPI_ERR_IN_STATUS");
  }
  fail("");
  if (requests[0] != MPI_REQUEST_NULL) {  // its message was not sent
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  }
  if (requests[1] != MPI_REQUEST_NULL) wrong("a send that neither completed nor failed");
  judge(error, before, out, in);
}

void one_by_one(const char* what, const char* type, MPI_Comm comm) {
  TypedData out(type, 1, 1), in(type, 1, 2);
  void *from = out.address(), *to = in.address();
  MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
  const int before = handled;
  fail(what);
  int error = MPI_Irecv(to, 1, in.type(), 0, 0, comm, &receive);
  if (error == MPI_SUCCESS) error = MPI_Isend(from, 1, out.type(), 0, 0, comm, &send);
  if (error == MPI_SUCCESS) error = MPI_Wait(&send, MPI_STATUS_IGNORE);
  if (error == MPI_SUCCESS) error = MPI_Wait(&receive, MPI_STATUS_IGNORE);
  fail("");
  if (receive != MPI_REQUEST_NULL) {
    MPI_Cancel(&receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
  }
  judge(error, before, out, in);
}

void persistent(const char* what, const char* type, MPI_Comm comm) {
  TypedData out(type, 1, 1), in(type, 1, 2);
  void *from = out.address(), *to = in.address();
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  const int before = handled;
  fail(what);
  int error = MPI_Recv_init(to, 1, in.type(), 0, 0, comm, &requests[0]);
  if (error == MPI_SUCCESS) error = MPI_Send_init(from, 1, out.type(), 0, 0, comm, &requests[1]);
  if (error == MPI_SUCCESS) error = MPI_Startall(2, requests);
  if (error == MPI_SUCCESS) error = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  judge(error, before, out, in);
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

void packing(const char* what, const char* type, MPI_Comm comm) {
  TypedData out(type, 1, 1), in(type, 1, 2);
  void *from = out.address(), *to = in.address();
  Bytes packed(static_cast<std::size_t>(out.packed_size()));
  const int size = static_cast<int>(packed.size()), before = handled;
  int position = 0;
  fail(what);
  int error = MPI_Pack(from, 1, out.type(), packed.data(), size, &position, comm);
  position = 0;
  if (error == MPI_SUCCESS) error = MPI_Unpack(packed.data(), size, &position, to, 1, in.type(), comm);
  judge(error, before, out, in);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  if (argc < 3) return 2;
  const bool known = std::strcmp(argv[1], "known") == 0;
  // Memory that was recognized as device memory is not treated as host memory if the driver fails later.
  if (known) blocking("", small_type, comm);
  const int begun = delivered;
  if (std::strcmp(argv[1], "spoilt") == 0) {
    blocking("", small_type, comm);
    tolerate_driver_errors();
    current = argv[2];
    nonblocking(argv[2], large_type, comm);
    if (errors != 1) wrong("success on a lost device");
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
  }
  for (int i = 2; i < argc; ++i) {
    current = argv[i];
    for (const char* type : {small_type, large_type, record_type, list_type, "double", "vector(600000,1,2,double)"}) {
      blocking(argv[i], type, comm);
      nonblocking(argv[i], type, comm);
      one_by_one(argv[i], type, comm);
      persistent(argv[i], type, comm);
      packing(argv[i], type, comm);
    }
  }
  std::printf("%d delivered, %d errors\n", delivered - begun, errors);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
