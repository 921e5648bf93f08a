// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

namespace messages {
namespace {

constexpr int kib = 1024, mib = 1024 * 1024;

std::string amount(int bytes) {
  return bytes >= mib ? std::to_string(bytes / mib) + "M" : std::to_string(bytes / kib) + "K";
}

/// Blocks with gaps of the same length.
void add_vectors(std::vector<Case>& cases) {
  struct {
    const char* name;
    MPI_Datatype type;
    int bytes;
  } const elements[] = {{"float", MPI_FLOAT, 4}, {"double", MPI_DOUBLE, 8}};
  for (const auto& element : elements)
    for (const int length : {1, 2, 4, 16, 64, 256})
      for (const int payload : {kib, 64 * kib, mib}) {
        const int count = payload / (length * element.bytes);
        if (count < 2) continue;
        cases.push_back({"vector",
                         std::string("vector/") + element.name + "/" + std::to_string(length * element.bytes) + "B/" +
                             amount(payload),
                         [=] { return Message(Shape::named(element.type).vector(count, length, 2 * length)); }});
      }
}

/// Sizes on both sides of the limit of eager messages, 8 KiB.
void add_eager_limit(std::vector<Case>& cases) {
  for (const int length : {1, 5, 16})
    for (const int payload : {3, 5, 6, 7, 8, 9, 12})
      cases.push_back(
          {"limit", "limit/" + std::to_string(8 * length) + "B/" + amount(payload * kib),
           [=] { return Message(Shape::named(MPI_DOUBLE).vector(payload * kib / (8 * length), length, 4 * length)); }});
}

/// Blocks with gaps at one end, contiguous doubles at the other: the faces of a particle-in-cell code (756 blocks of 40
/// B), the rows and columns of a transpose. For comparison the same with gaps at both ends.
void add_unlike_ends(std::vector<Case>& cases) {
  struct {
    int count, length, stride;
  } const vectors[] = {{64, 5, 15},  {756, 5, 15},  {4096, 5, 15},  {1024, 1, 8},
                       {4096, 1, 8}, {1024, 2, 64}, {256, 32, 128}, {2048, 8, 16}};
  for (const auto& vector : vectors) {
    const std::string name = std::to_string(vector.count) + "x" + std::to_string(8 * vector.length) + "B";
    const auto typed = [=] { return Shape::named(MPI_DOUBLE).vector(vector.count, vector.length, vector.stride); };
    const auto flat = [=] { return Shape::named(MPI_DOUBLE).contiguous(vector.count * vector.length); };
    cases.push_back({"unlike", "unlike/both/" + name, [=] { return Message(typed()); }});
    cases.push_back({"unlike", "unlike/send/" + name, [=] { return Message(typed(), flat()); }});
    cases.push_back({"unlike", "unlike/receive/" + name, [=] { return Message(flat(), typed()); }});
  }
}

/// A face next to the halo of an n^3 array of doubles, `width` cells thick, as a subarray. z is the slowest dimension.
void add_faces(std::vector<Case>& cases) {
  for (const int n : {64, 256})
    for (const int width : {1, 3})
      for (int normal = 0; normal < 3; ++normal) {
        std::vector<int> subsizes(3, n - 2 * width), starts(3, width);
        subsizes[normal] = width;
        cases.push_back({"face", "face/" + std::to_string(n) + "/" + "zyx"[normal] + "/w" + std::to_string(width), [=] {
                           return Message(Shape::named(MPI_DOUBLE).subarray({n, n, n}, subsizes, starts));
                         }});
      }
}

/// struct { int32_t id; char kind; double position[4]; }: 37 of 40 bytes are data.
Shape particle() {
  return Shape::structure({1, 1, 4}, {0, 4, 8},
                          {Shape::named(MPI_INT32_T), Shape::named(MPI_CHAR), Shape::named(MPI_DOUBLE)});
}

void add_structs(std::vector<Case>& cases) {
  for (const int payload : {kib, 64 * kib, mib})
    cases.push_back({"struct", "struct/37of40/" + amount(payload), [=] { return Message(particle(), payload / 37); }});
  for (const int payload : {kib, 64 * kib, mib})
    cases.push_back({"resized", "resized/8of24/" + amount(payload),
                     [=] { return Message(Shape::named(MPI_DOUBLE).resized(24), payload / 8); }});
}

/// Ascending displacements, irregularly 1 to 3 blocks apart.
void add_lists(std::vector<Case>& cases) {
  for (const int length : {1, 4, 16})
    for (const int payload : {64 * kib, mib})
      cases.push_back({"list", "list/" + std::to_string(8 * length) + "B/" + amount(payload), [=] {
                         std::vector<int> places;
                         unsigned state = 12345;
                         for (int at = 0, count = payload / (8 * length); int(places.size()) < count;) {
                           places.push_back(at);
                           state = state * 1664525u + 1013904223u;
                           at += length * (1 + int(state >> 16) % 3);
                         }
                         return Message(Shape::named(MPI_DOUBLE).indexed_block(length, places));
                       }});
}

}  // namespace

void add_plain(std::vector<Case>& cases) {
  add_vectors(cases);
  add_faces(cases);
  add_structs(cases);
  add_lists(cases);
  add_eager_limit(cases);
  add_unlike_ends(cases);
}

}  // namespace messages
