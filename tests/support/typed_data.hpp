// SPDX-License-Identifier: Apache-2.0
#pragma once
// One side of a message: type, count, and a buffer in which every byte is known.
//
// Conventions of the conformance tests: the ranks form a ring, and the seed of the data is the sender's rank, so the
// receiver knows every byte.
#include <mpi.h>

#include <memory>

#include "tests/support/device_memory.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/mpi_types.hpp"

namespace bestride::test {

class TypedData {
 public:
  TypedData(std::string_view type, int count, std::uint64_t seed, std::size_t misaligned = 0)
      : TypedData(type_from(type), count, seed, misaligned) {}
  TypedData(const TypeExpression& type, int count, std::uint64_t seed, std::size_t misaligned = 0,
            Constructors constructors = Constructors::plain);

  /// The address of the buffer, or of its copy in the memory that TEST_MEMORY selects. Updates the copy if the buffer
  /// may have changed.
  void* address();
  /// Updates the copy after the buffer was changed, if MPI already has the address.
  void upload();
  /// Copies the contents of the copy to the buffer.
  void fetch();
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }
  std::int64_t packed_size() const;
  const std::vector<ByteRun>& runs() const { return runs_; }
  Buffer& buffer() {
    uploaded_ = false;
    return buffer_;
  }

  /// The bytes of the type, in packing order.
  Bytes packed() const { return buffer_.gather(runs_); }
  /// Fails the case unless the buffer has its original contents except for these packed bytes (fewer than packed_size()
  /// for a short message). Then restores the original contents.
  void expect(const Bytes& arrived);
  void expect_untouched() { expect({}); }
  void free_type() { type_.free(); }

 private:
  int count_;
  std::vector<ByteRun> runs_;
  Buffer buffer_, made_;
  std::unique_ptr<DeviceMemory> copy_;
  bool uploaded_ = false;
  CommittedType type_;
};

/// The neighbors of this rank in the ring of a communicator.
struct Ring {
  explicit Ring(MPI_Comm comm = MPI_COMM_WORLD) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
  }
  int rank = 0, size = 1, next = 0, previous = 0;
};

/// The data that rank `rank` sends with this type and count.
inline std::uint64_t outgoing_seed(int rank) { return 1000 + static_cast<std::uint64_t>(rank); }
inline TypedData outgoing(std::string_view type, int count, int rank) { return {type, count, outgoing_seed(rank)}; }
/// The receive buffer for the data on this rank.
inline constexpr std::uint64_t incoming_seed = 77;
inline TypedData incoming(std::string_view type, int count) { return {type, count, incoming_seed}; }

/// Checks source, tag, and the counts of a status for this type.
void check_status(const MPI_Status& status, int source, int tag, MPI_Datatype type, int count);

/// An eager message, a rendezvous message, members of several sizes, and an irregular list. The records are smaller
/// than one fragment of the transport: MPICH 4.0.2 cannot receive longer ones from a contiguous sender such as its own
/// MPI_Bsend and MPI_Sendrecv_replace (MPI_ERR_TRUNCATE: a fragment ends inside a member).
inline constexpr const char* small_type = "vector(16,1,2,double)";
inline constexpr const char* large_type = "vector(40000,1,2,double)";
inline constexpr const char* record_type = "contiguous(100,resized(0,40,struct([1,1,3],[0,8,17],[double,int,char])))";
inline constexpr const char* list_type = "indexed([3,1,4,1,5,9],[0,7,11,40,50,100],float)";
inline constexpr const char* every_type[] = {small_type, large_type, record_type, list_type};

}  // namespace bestride::test
