// SPDX-License-Identifier: Apache-2.0
#include "cli/explain/explain.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "cli/common/command.hpp"
#include "cli/common/number.hpp"
#include "cli/explain/collective.hpp"
#include "cli/explain/explanation.hpp"
#include "datatype/named.hpp"
#include "perfmodel/collective/shape.hpp"
#include "telemetry/report/json_writer.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

void say(const char* what, const std::string& text) { std::printf("%-10s %s\n", what, text.c_str()); }

std::string bytes_of(std::int64_t bytes) {
  const std::string exact = std::to_string(bytes) + " B";
  return bytes < 1024 ? exact : exact + " (" + bytes_text(static_cast<std::uint64_t>(bytes)) + ")";
}

std::string shape_text(const Shape& shape) {
  std::string text(name(shape.kind));
  if (shape.kind == Shape::Class::contiguous) return text;
  if (shape.loops > 0) text += ", " + std::to_string(shape.loops) + (shape.loops == 1 ? " loop" : " loops");
  // Only a single loop has one distance; else it is a mean.
  const char* const about = shape.kind == Shape::Class::vector ? "" : "about ";
  return text + ", innermost " + std::to_string(shape.inner_count) + " turns, blocks " + about +
         std::to_string(shape.jump) + " B apart";
}

std::string time_text(double seconds) {
  return std::isfinite(seconds) ? "predicted " + seconds_text(seconds) : "not possible here";
}

void print_methods(const Explanation& it) {
  const DeviceChoice& choice = it.device_choice;
  for (int i = 0; i < cuda::transfer_method_count; ++i) {
    const auto method = static_cast<cuda::TransferMethod>(i);
    const double seconds = choice.seconds[static_cast<std::size_t>(i)];
    const bool chunks =
        method == cuda::TransferMethod::pipelined && std::isfinite(seconds) && choice.chunk < it.layout->size();
    std::printf("  %-11s %s%s%s\n", cuda::name(method), time_text(seconds).c_str(),
                chunks ? (" in chunks of " + bytes_text(static_cast<std::uint64_t>(choice.chunk))).c_str() : "",
                choice.possible() && choice.method == method ? ("  <- chosen: " + it.because).c_str() : "");
  }
  if (!choice.possible()) std::printf("  no way is possible: an MPI error names the remedy\n");
}

void print_text(const Question& question, const Explanation& it) {
  say("type", it.type + ", count " + std::to_string(question.count));
  say("layout", it.layout->text());
  say("size", bytes_of(it.layout->size()) + " in " + std::to_string(it.layout->blocks()) +
                  (it.layout->blocks() == 1 ? " block" : " blocks"));
  say("extent", std::to_string(it.element.extent) + " B from lower bound " + std::to_string(it.element.lower_bound) +
                    "; all elements touch " + bytes_of(it.layout->high() - it.layout->low()));
  say("shape", shape_text(it.shape));
  say("kernels", question.device ? it.gpu_kernels : it.kernels);
  say("profile", it.profile);
  if (!it.profile_problem.empty()) say("", it.profile_problem);
  constexpr const char* places[] = {
      "this rank", "the same last-level cache", "the same NUMA domain", "the same socket", "this node", "another node"};
  static_assert(std::size(places) == distance_count);
  const std::string where =
      is_message(question.call) ? std::string(", peer on ") + places[static_cast<std::size_t>(question.distance)] : "";
  const std::string other = is_message(question.call)
                                ? (question.aware ? ", which MPI takes" : ", which MPI does not take")
                                : (question.aware ? ", packed buffer too" : ", packed buffer in host memory");
  const std::string memory = question.device ? ", device memory" + other : "";
  say("call", std::string(name(question.call)) + where + memory);
  if (question.device) return print_methods(it);
  if (it.engine) {
    std::printf("  %-8s <- chosen: %s\n", "engine", it.because.c_str());
    std::printf("  in calls that the library packs in another way (MPI_Bsend, MPI_Sendrecv_replace):\n");
  }
  for (int i = 0; i < strategy_count; ++i) {
    const double seconds = it.choice.seconds[static_cast<std::size_t>(i)];
    const bool chosen = static_cast<int>(it.choice.strategy) == i;
    std::printf("  %-8s %s%s\n", std::string(name(static_cast<Strategy>(i))).c_str(), time_text(seconds).c_str(),
                !chosen     ? ""
                : it.engine ? "  <- chosen there"
                            : ("  <- chosen: " + it.because).c_str());
  }
}

void print_json(const Question& question, const Explanation& it) {
  JsonWriter json;
  json.open_object();
  json.member("format", "bestride-explanation")
      .member("version", 1)
      .member("type", it.type)
      .member("count", question.count);
  json.member("call", name(question.call)).member("distance", name(question.distance));
  json.member("layout", it.layout->text()).member("size", it.layout->size()).member("blocks", it.layout->blocks());
  json.member("lower_bound", it.element.lower_bound).member("extent", it.element.extent);
  json.member("low", it.layout->low()).member("high", it.layout->high());
  json.member("shape", name(it.shape.kind))
      .member("kernels", question.device ? it.gpu_kernels : it.kernels)
      .member("profile", it.profile);
  json.key("seconds").open_object();
  if (question.device)
    for (int i = 0; i < cuda::transfer_method_count; ++i)
      json.member(cuda::name(static_cast<cuda::TransferMethod>(i)),
                  it.device_choice.seconds[static_cast<std::size_t>(i)]);
  else
    for (int i = 0; i < strategy_count; ++i)
      json.member(name(static_cast<Strategy>(i)), it.choice.seconds[static_cast<std::size_t>(i)]);
  json.close_object();
  if (question.device) json.member("chunk", it.device_choice.chunk);
  const std::string_view chosen = it.engine                     ? "engine"
                                  : !question.device            ? name(it.choice.strategy)
                                  : it.device_choice.possible() ? cuda::name(it.device_choice.method)
                                                                : "none";
  json.member("strategy", chosen).member("because", it.because);
  json.close_object();
  std::fputs(json.text().c_str(), stdout);
}

/// The syntax of type expressions, as in datatype/expression.hpp.
std::string language() {
  std::string text = R"(
A datatype is a name or one of these, T being a datatype; numbers may end in K, M or G, or be written as 1e6:
  contiguous(n,T)  vector(n,length,stride,T)  hvector(n,length,bytes,T)
  indexed([length,...],[at,...],T)  hindexed([length,...],[bytes,...],T)
  indexed_block(length,[at,...],T)  hindexed_block(length,[bytes,...],T)
  struct([length,...],[bytes,...],[T,...])  subarray([size,...],[subsize,...],[start,...],c|fortran,T)
  darray(ranks,rank,[size,...],[block|cyclic|none,...],[argument|dflt,...],[ranks,...],c|fortran,T)
  resized(lower_bound,extent,T)  dup(T)
or a call of MPI's constructor, 'MPI_Type_vector(1000,1,2,MPI_DOUBLE)', or a layout of a report, '1000 x 16 | 8 B'.
Names:)";
  std::size_t column = 6;
  for (const NamedType& type : named_types()) {
    if (column + 1 + type.name.size() > 110) {
      text += "\n ";
      column = 1;
    }
    text += ' ';
    text += type.name;
    column += 1 + type.name.size();
  }
  return text;
}

}  // namespace

void add_explain(CLI::App& app) {
  const auto question = std::make_shared<Question>();
  const auto json = std::make_shared<bool>(false);
  CLI::App* const command = app.add_subcommand(
      "explain", "what would be done with a datatype, and why: bestride explain 'vector(1000,1,2,double)' 1");
  command->footer(language);
  CLI::Option* const type =
      command->add_option("type", question->type, "datatype, as in 'vector(1000,1,2,double)'")->type_name("TYPE");
  const auto count = std::make_shared<std::string>("1");
  command->add_option("count", *count, "number of elements, default 1")->type_name("COUNT");
  const std::map<std::string, CallKind> calls{{"send", CallKind::send},   {"receive", CallKind::receive},
                                              {"isend", CallKind::isend}, {"irecv", CallKind::irecv},
                                              {"pack", CallKind::pack},   {"unpack", CallKind::unpack}};
  std::map<std::string, Distance> distances;
  for (int i = 0; i < distance_count; ++i) distances.emplace(name(static_cast<Distance>(i)), static_cast<Distance>(i));
  const auto call = std::make_shared<std::string>("send"), distance = std::make_shared<std::string>("node");
  command->add_option("--call", *call, "send, receive, isend, irecv, pack or unpack; default send")
      ->check(CLI::IsMember({"send", "receive", "isend", "irecv", "pack", "unpack"}));
  command
      ->add_option("--distance", *distance,
                   "where the peer is: self; bound to the same cache, domain or socket; node, network; default node")
      ->check(CLI::IsMember(distances));
  CLI::Option* const device = command->add_flag("--device", question->device, "the buffer is in device memory");
  command
      ->add_flag("--aware", question->aware,
                 "the MPI library is GPU-aware; with pack and unpack: the packed buffer is in device memory, too")
      ->needs(device);
  command->add_flag("--json", *json, "as JSON");
  const auto of_all = std::make_shared<CollectiveQuestion>();
  std::vector<std::string> names;
  names.reserve(collective_count);
  for (int i = 0; i < collective_count; ++i) names.emplace_back(name(static_cast<Collective>(i)));
  CLI::Option* const collective = command
                                      ->add_option("--collective", of_all->collective,
                                                   "instead of a datatype: what would be done with a collective")
                                      ->check(CLI::IsMember(names))
                                      ->excludes(type);
  command->add_option("--bytes", of_all->bytes, "of the whole vector, default 1M")
      ->needs(collective)
      ->type_name("SIZE");
  command->add_option("--nodes", of_all->nodes, "default 2")->needs(collective)->check(whole_number(1, 1 << 24));
  command->add_option("--ranks", of_all->ranks, "on all nodes together, default 4")
      ->needs(collective)
      ->check(whole_number(1, 1 << 24));
  command->add_flag("--nonblocking", of_all->nonblocking, "the nonblocking or persistent form")->needs(collective);
  command->add_option("--mbit", of_all->mbit, "Mbit/s over a node's link, if the profile has no measured link")
      ->needs(collective)
      ->check(number(0.001, 1e9));
  command->add_flag("--cyclic", of_all->cyclic, "ranks are placed round-robin")->needs(collective);
  command->callback([=] {
    if (!of_all->collective.empty()) return explain_collective(*of_all, *json);
    if (question->type.empty())
      fail("nothing to explain; give a datatype, as in 'vector(1000,1,2,double)', or --collective");
    const auto number = parse_number(*count);
    if (!number) fail("count '" + *count + "': " + number.error().text);
    question->count = *number;
    question->call = calls.at(*call);
    question->distance = distances.at(*distance);
    const auto it = explain(*question);
    if (!it) fail(it.error().text);
    *json ? print_json(*question, *it) : print_text(*question, *it);
  });
}

}  // namespace bestride::inline cli
