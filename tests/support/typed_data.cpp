// SPDX-License-Identifier: Apache-2.0
#include "tests/support/typed_data.hpp"

namespace bestride::test {
namespace {

std::vector<ByteRun> runs_of_counted(const TypeExpression& type, std::int64_t count) {
  return runs_of(*type_map(type), count, facts_of(type)->extent);
}

}  // namespace

TypedData::TypedData(const TypeExpression& type, int count, std::uint64_t seed, std::size_t misaligned,
                     Constructors constructors)
    : count_(count),
      runs_(runs_of_counted(type, count)),
      buffer_(Buffer::holding(type, count, seed, misaligned)),
      made_(buffer_),
      type_(type, constructors) {
  if (const MemoryPlace place = next_memory_place(); place != MemoryPlace::host)
    copy_ = std::make_unique<DeviceMemory>(place, buffer_.bytes().size());
}

void* TypedData::address() {
  if (!copy_) return buffer_.origin();
  if (!uploaded_) upload();
  return copy_->data() + buffer_.origin_offset();
}

void TypedData::upload() {
  if (copy_) copy_->write(buffer_.bytes().data());
  uploaded_ = true;
}

std::int64_t TypedData::packed_size() const {
  std::int64_t size = 0;
  for (const ByteRun& run : runs_) size += run.length;
  return size;
}

void TypedData::fetch() {
  if (copy_) copy_->read(buffer_.bytes().data());
}

void TypedData::expect(const Bytes& arrived) {
  fetch();
  Buffer expected = made_;
  expected.scatter(runs_, arrived);
  if (const auto wrong = buffer_.difference(expected)) fail_check(__FILE__, __LINE__, "received " + *wrong);
  buffer_ = made_;
  // A persistent request may use the address again.
  upload();
}

void check_status(const MPI_Status& status, int source, int tag, MPI_Datatype type, int count) {
  CHECK_EQUAL(source, status.MPI_SOURCE);
  CHECK_EQUAL(tag, status.MPI_TAG);
  int got = -1, cancelled = -1;
  MPI_Get_count(&status, type, &got);
  CHECK_EQUAL(count, got);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK_EQUAL(0, cancelled);
}

}  // namespace bestride::test
