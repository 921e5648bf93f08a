// SPDX-License-Identifier: Apache-2.0
// MPI_Pack and MPI_Unpack between every two kinds of memory, compared with packing from host memory.
#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

constexpr const char* types[] = {"double",    small_type, large_type,
                                 record_type, list_type,  "resized(-8,64,vector(3,1,2,int))"};
constexpr int first = 5;  ///< position of the first packed byte

/// A buffer of packed bytes in any kind of memory.
class Packed {
 public:
  Packed(MemoryPlace place, const Bytes& content) : bytes_(content) {
    if (place != MemoryPlace::host) {
      copy_ = std::make_unique<DeviceMemory>(place, bytes_.size());
      copy_->write(bytes_.data());
    }
  }
  void* address() { return copy_ ? copy_->data() : bytes_.data(); }
  const Bytes& fetch() {
    if (copy_) copy_->read(bytes_.data());
    return bytes_;
  }

 private:
  Bytes bytes_;
  std::unique_ptr<DeviceMemory> copy_;
};

}  // namespace

MPI_CASE(pack) {
  for (const char* type : types)
    for (const MemoryPlace user : every_memory_place)
      for (const MemoryPlace there : every_memory_place) {
        set_memory_place(user);
        TypedData out(type, 2, 1);
        const std::size_t size = static_cast<std::size_t>(out.packed_size());
        Bytes expected = noise(size + 20, 3);
        Packed packed(there, expected);
        int position = first;
        CHECK_EQUAL(MPI_SUCCESS, MPI_Pack(out.address(), 2, out.type(), packed.address(), static_cast<int>(size) + 20,
                                          &position, MPI_COMM_WORLD));
        CHECK_EQUAL(first + static_cast<int>(size), position);
        const Bytes bytes = out.packed();
        std::copy(bytes.begin(), bytes.end(), expected.begin() + first);
        if (const auto wrong = difference(expected, packed.fetch()))
          fail_check(__FILE__, __LINE__, std::string(type) + ": " + *wrong);
        out.expect_untouched();
      }
}

MPI_CASE(unpack) {
  for (const char* type : types)
    for (const MemoryPlace user : every_memory_place)
      for (const MemoryPlace there : every_memory_place) {
        set_memory_place(user);
        TypedData in(type, 2, 1);
        const std::size_t size = static_cast<std::size_t>(in.packed_size());
        const Bytes content = noise(size + 20, 4);
        Packed packed(there, content);
        int position = first;
        CHECK_EQUAL(MPI_SUCCESS, MPI_Unpack(packed.address(), static_cast<int>(size) + 20, &position, in.address(), 2,
                                            in.type(), MPI_COMM_WORLD));
        CHECK_EQUAL(first + static_cast<int>(size), position);
        in.expect(Bytes(content.begin() + first, content.begin() + first + static_cast<std::ptrdiff_t>(size)));
        if (const auto wrong = difference(content, packed.fetch()))
          fail_check(__FILE__, __LINE__, std::string(type) + ": " + *wrong);
      }
}

MPI_CASE(buffer_too_small) {
  set_memory_place(MemoryPlace::device);
  TypedData out(small_type, 2, 1);
  Packed packed(MemoryPlace::device, noise(static_cast<std::size_t>(out.packed_size()), 3));
  const ReturnErrors returned(MPI_COMM_WORLD);
  int position = 1;
  CHECK_EQUAL(MPI_ERR_TRUNCATE, MPI_Pack(out.address(), 2, out.type(), packed.address(),
                                         static_cast<int>(out.packed_size()), &position, MPI_COMM_WORLD));
  CHECK_EQUAL(1, position);
}

MPI_CASE(unused_communicator) {
  set_memory_place(MemoryPlace::device);
  MPI_Group world;
  MPI_Comm comm;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_create(MPI_COMM_WORLD, world, &comm);
  TypedData out(small_type, 2, 1);
  Packed packed(MemoryPlace::host, noise(static_cast<std::size_t>(out.packed_size()), 3));
  int position = 0;
  CHECK_EQUAL(MPI_SUCCESS, MPI_Pack(out.address(), 2, out.type(), packed.address(), static_cast<int>(out.packed_size()),
                                    &position, comm));
  if (const auto wrong = difference(out.packed(), packed.fetch())) fail_check(__FILE__, __LINE__, *wrong);
  MPI_Group_free(&world);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
