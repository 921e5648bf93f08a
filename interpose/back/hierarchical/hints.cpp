// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/hints.hpp"

#include <span>
#include <string_view>

#include "base/message.hpp"
#include "interpose/back/calls.hpp"
#include "interpose/back/hierarchical/job.hpp"
#include "interpose/back/runtime.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride {
namespace {

struct Choice {
  const char* text;
  int value;
};
struct Key {
  const char* name;
  int CommHints::*member;
  std::span<const Choice> choices;
  const char* remedy;  ///< the choices, for a person
  int off;             ///< where members differ
};
constexpr Choice quantise_choices[] = {{"off", 0}, {"int8", 8}, {"int4", 4}};
constexpr Choice reassociate_choices[] = {{"0", 0}, {"1", 1}, {"false", 0}, {"true", 1}};
constexpr Choice format_choices[] = {{"none", CommHints::none - 1},
                                     {"bfloat16", static_cast<int>(NumberFormat::bfloat16)},
                                     {"half", static_cast<int>(NumberFormat::float16)}};
constexpr Key keys[] = {{"bestride_quantize", &CommHints::quantise, quantise_choices, "off, int8 or int4", 0},
                        {"bestride_reassociate", &CommHints::reassociate, reassociate_choices, "0 or 1", 0},
                        {"bestride_format", &CommHints::format, format_choices, "bfloat16, half or none", CommHints::none}};
constexpr int key_count = sizeof keys / sizeof *keys;

/// CommHints::none: not given, or not a value it can have, which is said.
int read(MPI_Info info, const Key& key) noexcept {
  char text[32] = "";
  int given = 0;
  if (info == MPI_INFO_NULL || real.Info_get(info, key.name, sizeof text - 1, text, &given) != MPI_SUCCESS || !given)
    return CommHints::none;
  for (const Choice& choice : key.choices)
    if (std::string_view(choice.text) == text) return choice.value;
  say_once(key.name, "info key %s='%s' is not %s; it is ignored", key.name, text, key.remedy);
  return CommHints::none;
}

}  // namespace

void take_hints(MPI_Comm comm, MPI_Info info) noexcept {
  if (!job()) return;
  runtime().comms.note(comm);
  CommEntry* entry = runtime().comms.find(comm);
  if (entry && entry->size() < 2) return;
  // The greatest of each value and of its negative; and whether one member can't remember them.
  int mine[2 * key_count + 1], most[2 * key_count + 1];
  for (int i = 0; i < key_count; ++i) {
    mine[2 * i] = read(info, keys[i]);
    mine[2 * i + 1] = -mine[2 * i];
  }
  mine[2 * key_count] = entry == nullptr;
  if (real.Allreduce(mine, most, 2 * key_count + 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS || !entry) return;
  for (int i = 0; i < key_count; ++i) {
    int& value = entry->collectives.hints.*keys[i].member;
    if (most[2 * key_count]) {
      value = keys[i].off;
    } else if (most[2 * i] != -most[2 * i + 1]) {
      say_once("hints", "the members of a communicator give the info key %s different values; it is off there: give all the same",
               keys[i].name);
      value = keys[i].off;
    } else if (most[2 * i] != CommHints::none) {
      value = most[2 * i];
    }
  }
}

}  // namespace bestride
