// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/info_hints.hpp"

#include <span>
#include <string_view>

#include "base/message.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/collectives/member.hpp"
#include "interpose/mpi/functions.hpp"
#include "kernels/quantize/format.hpp"

namespace bestride::inline interpose {
namespace {

struct HintValue {
  const char* text;
  int value;
};
struct Key {
  const char* name;
  int CommHints::*member;
  std::span<const HintValue> choices;
  const char* remedy;  ///< the valid values, for the message
  int off;             ///< the value if members differ
};
constexpr HintValue quantize_choices[] = {{"off", 0}, {"int8", 8}, {"int4", 4}};
constexpr HintValue reassociate_choices[] = {{"0", 0}, {"1", 1}, {"false", 0}, {"true", 1}};
constexpr HintValue format_choices[] = {{"none", CommHints::none - 1},
                                        {"bfloat16", static_cast<int>(NumberFormat::bfloat16)},
                                        {"half", static_cast<int>(NumberFormat::float16)}};
constexpr Key keys[] = {
    {"bestride_quantize", &CommHints::quantize, quantize_choices, "off, int8 or int4", 0},
    {"bestride_reassociate", &CommHints::reassociate, reassociate_choices, "0 or 1", 0},
    {"bestride_format", &CommHints::format, format_choices, "bfloat16, half or none", CommHints::none - 1}};
static_assert(hint_words == 2 * sizeof keys / sizeof *keys);

/// CommHints::none: not given, or an invalid value, which is reported.
int read(MPI_Info info, const Key& key) noexcept {
  char text[32] = "";
  int given = 0;
  if (info == MPI_INFO_NULL || real.Info_get(info, key.name, sizeof text - 1, text, &given) != MPI_SUCCESS || !given)
    return CommHints::none;
  for (const HintValue& choice : key.choices)
    if (std::string_view(choice.text) == text) return choice.value;
  warn_once(key.name, "info key %s='%s' is not %s; it is ignored", key.name, text, key.remedy);
  return CommHints::none;
}

}  // namespace

CommHints read_hints(MPI_Info info) noexcept {
  CommHints hints;
  for (const Key& key : keys) hints.*key.member = read(info, key);
  return hints;
}

void write_words(const CommHints& hints, std::int64_t* words) noexcept {
  for (const Key& key : keys) {
    *words++ = hints.*key.member;
    *words++ = -(hints.*key.member);
  }
}

void apply_agreed(CommHints& hints, const std::int64_t* greatest) noexcept {
  for (const Key& key : keys) {
    if (greatest[0] != -greatest[1]) {
      warn_once(
          "hints",
          "the members of a communicator give the info key %s different values; it is off there: give all the same",
          key.name);
      hints.*key.member = key.off;
    }
    greatest += 2;
  }
}

void apply_hints(MPI_Comm comm, MPI_Info info) noexcept {
  if (!job()) return;
  const CommMember member(comm, false);
  if (!member) return;
  CommHints given = read_hints(info);
  std::int64_t mine[hint_words + 1], most[hint_words + 1];
  write_words(given, mine);
  mine[hint_words] = !collectives_of(*member).remembered;
  if (real.Allreduce(mine, most, hint_words + 1, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS) return;
  apply_agreed(given, most);
  for (const Key& key : keys) {
    int& value = collectives_of(*member).hints.*key.member;
    // If some member can't store hints, they are off on all members.
    if (most[hint_words])
      value = key.off;
    else if (given.*key.member != CommHints::none)
      value = given.*key.member;
  }
}

}  // namespace bestride::inline interpose
