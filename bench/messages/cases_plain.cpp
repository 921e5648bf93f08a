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
}

}  // namespace messages
