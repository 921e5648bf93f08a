// SPDX-License-Identifier: Apache-2.0
// Goal: never slower than a kernel that is written for the same shape. Three shapes, both directions.
#include "bench/gpu/bench.hpp"
#include "bench/gpu/by_hand.hpp"
#include "datatype/build.hpp"
#include "kernels/cuda/testing/test_bytes.hpp"

namespace gpu {
namespace {

using bestride::Built;
using bestride::intern;
using bestride::make_blocks;
using bestride::make_repeat;

/// Launches the kernel of a shape at each of the places in turn.
template <class Shape>
std::function<void()> by_hand_in_turn(const Bench& bench, const std::string& kernel, const LayoutPtr& layout,
                                      int places) {
  const FunctionHandle function = bench.gpu().function(by_hand::image(), kernel.c_str());
  const std::uint64_t words = static_cast<std::uint64_t>(layout->size()) / sizeof(typename Shape::Word);
  const auto pages = [](std::int64_t bytes) { return static_cast<Address>((bytes + 4095) / 4096 * 4096); };
  return [&bench, function, words, places, next = Address{0}, user = pages(layout->high()),
          packed = pages(layout->size())]() mutable {
    const Address place = next++ % static_cast<Address>(places);
    by_hand::Move work{bench.user() + place * user, bench.packed() + place * packed, words};
    bench.gpu().launch(function, static_cast<unsigned>((words + 255) / 256), &work);
  };
}

/// Checks that the hand-written kernel gives the same bytes.
template <class Shape>
bool same(const Bench& bench, const std::string& kernel, const LayoutPtr& layout) {
  namespace test = bestride::cuda::test;
  const std::size_t span = static_cast<std::size_t>(layout->high()), size = static_cast<std::size_t>(layout->size());
  const test::Bytes before = test::noise(span, 3);
  test::Bytes packed(size);
  bench.gpu().write(bench.user(), before.data(), span);
  by_hand_in_turn<Shape>(bench, kernel, layout, 1)();
  bench.gpu().synchronize();
  bench.gpu().read(packed.data(), bench.packed(), size);
  return packed == test::packed_by_reference(layout, before, 0, layout->size());
}

template <class Shape>
void compare(const Bench& bench, const std::string& name, const std::string& kernel, const LayoutPtr& small,
             const LayoutPtr& layout) {
  if (!bench.fits(layout->high(), layout->size())) return bench.results().leave_out(name, "not enough device memory");
  const bool right = bench.right(small) && same<Shape>(bench, kernel + "_pack", small);
  const int places = bench.places(layout->high(), layout->size());
  for (const Direction direction : {Direction::pack, Direction::unpack}) {
    const std::string suffix = direction == Direction::pack ? "pack" : "unpack";
    const std::vector<double> took =
        bench.medians({bench.in_turn(bench.batches(layout, direction)),
                       by_hand_in_turn<Shape>(bench, kernel + "_" + suffix, layout, places)});
    bench.results().add({"by hand over ours",
                         name + ", " + suffix,
                         took[1] / took[0],
                         1,
                         true,
                         {{"us", took[0] * 1e6}, {"by_hand_us", took[1] * 1e6}},
                         true,
                         right});
  }
}

/// Bytes 0 to 3 and 8 to 27 of every 32.
LayoutPtr structs(std::int64_t count) {
  const Built one = make_blocks(std::vector<std::int64_t>{0, 8}, std::vector<std::int64_t>{4, 20});
  return intern(*make_repeat(*one, count, by_hand::Structs::extent));
}

}  // namespace

void measure_by_hand(const Bench& bench) {
  using by_hand::Face;
  using by_hand::Structs;
  using by_hand::Vector;
  const std::int64_t size = bench.scale().large / 16;  // 64 MiB
  const auto vector = [](std::int64_t packed) {
    return rows(packed / Vector::packed_bytes, Vector::block, Vector::pitch);
  };
  const auto face = [](std::int64_t rows_of_it) { return rows(rows_of_it, Face::packed_bytes, Face::user_bytes); };
  const std::int64_t face_rows = bench.gpu().stand_in() ? 512 : Face::edge * Face::edge;
  compare<Vector>(bench, "2-D vector, 64 of 512 B, " + bytes_text(size), "by_hand_vector", vector(1 << 12),
                  vector(size));
  compare<Face>(bench, "3-D face, 3 of 512 doubles, " + std::to_string(face_rows) + " rows", "by_hand_face", face(200),
                face(face_rows));
  compare<Structs>(bench, "array of structs, 24 of 32 B, " + bytes_text(size), "by_hand_structs", structs(300),
                   structs(size / 32));
}

}  // namespace gpu
