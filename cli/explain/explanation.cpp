// SPDX-License-Identifier: Apache-2.0
#include "cli/explain/explanation.hpp"

#include <cmath>
#include <cstdio>
#include <optional>

#include "base/variables.hpp"
#include "cli/explain/used_profile.hpp"
#include "datatype/named.hpp"
#include "datatype/respellable.hpp"
#include "kernels/cuda/driver/image.hpp"
#include "kernels/cuda/launch/sketch.hpp"
#include "kernels/packer.hpp"
#include "model/processors.hpp"

namespace bestride::inline cli {
namespace {

/// Size in bytes of the basic type of all leaves of a tree; 0 if the leaves differ or are pair types.
std::int64_t leaf_bytes(const TypeExpression& type, std::optional<std::string>& seen) {
  if (type.combiner == TypeExpression::Combiner::named) {
    const NamedType* const named = find_named_type(type.name);
    if (!named || named->first != named->size || (seen && *seen != type.name)) return 0;
    seen = type.name;
    return named->size;
  }
  std::int64_t bytes = 0;
  for (const TypeExpression& child : type.children)
    if (bytes = leaf_bytes(child, seen); bytes == 0) return 0;
  return bytes;
}

Allowed allowed_for(const Explanation& it, const Question& question, std::int64_t leaf) {
  Allowed allowed;
  const std::string& contiguous = Settings::get().text("BESTRIDE_FORCE=contiguous");
  const bool left_alone =
      it.layout->contiguous() &&
      (contiguous == "forward" || (contiguous == "auto" && in_virtual_machine()) || !is_near(question.distance));
  allowed.respell = is_message(question.call) && respellable(*it.layout, leaf) && !left_alone;
  allowed.pack = it.layout->size() <= Settings::get().size("BESTRIDE_PACK_LIMIT") || !is_message(question.call);
  return allowed;
}

std::string because(const Explanation& it, double margin) {
  if (it.layout->size() == 0) return "there are no bytes to move";
  const double forward = it.choice.seconds[0], chosen = it.choice.seconds[static_cast<std::size_t>(it.choice.strategy)];
  char text[128];
  if (it.choice.strategy != Strategy::forward) {
    std::snprintf(text, sizeof text, "predicted %.1f times as fast as leaving it to MPI", forward / chosen);
    return text;
  }
  if (it.layout->contiguous()) return "the bytes are contiguous: there is nothing to pack";
  return "nothing is predicted to be at least " + percent_text(margin) + " faster than leaving it to MPI";
}

/// Applies BESTRIDE_STRATEGY if it names a possible strategy.
void apply_forced(Explanation& it) {
  const std::string& forced = Settings::get().text("BESTRIDE_STRATEGY");
  Strategy strategy;
  if (forced == "auto" || !parse(forced, &strategy)) return;
  if (!std::isfinite(it.choice.seconds[static_cast<std::size_t>(strategy)])) return;
  it.choice.strategy = strategy;
  it.because = "BESTRIDE_STRATEGY=" + forced + " forces it";
}

std::string device_because(const Explanation& it) {
  const DeviceChoice& choice = it.device_choice;
  if (!choice.possible()) return "";
  if (it.layout->size() == 0) return "there are no bytes to move";
  if (it.device_allowed.forced == choice.method)
    return std::string("BESTRIDE_STRATEGY=") + cuda::name(choice.method) + " forces it";
  if (it.layout->contiguous() && choice.method == cuda::TransferMethod::staged)
    return "the bytes are contiguous: one copy";
  std::size_t next = choice.seconds.size();
  for (std::size_t method = 0; method < choice.seconds.size(); ++method)
    if (method != static_cast<std::size_t>(choice.method) &&
        (next == choice.seconds.size() || choice.seconds[method] < choice.seconds[next]))
      next = method;
  if (!std::isfinite(choice.seconds[next])) return "nothing else is possible";
  const double gain = 1 - choice.seconds[static_cast<std::size_t>(choice.method)] / choice.seconds[next];
  const std::string other = cuda::name(static_cast<cuda::TransferMethod>(next));
  return gain < 0.01 ? "predicted about as fast as " + other
                     : "predicted " + percent_text(gain) + " faster than " + other;
}

void explain_device(Explanation& it, const Question& question, const Chooser& chooser) {
  const bool packs = question.call == CallKind::pack || is_sending(question.call);
  cuda::KernelOptions options = cuda::KernelOptions::from_settings();
  options.bulk_from = chooser.profile().device().bulk_from(packs ? Direction::pack : Direction::unpack);
  const auto sketched = cuda::sketch(it.layout, packs ? Direction::pack : Direction::unpack, options);
  it.gpu_kernels = !sketched                 ? sketched.error().text
                   : it.layout->contiguous() ? "none: contiguous bytes are copied"
                                             : sketched->kernels;
  if (!cuda::has_kernels()) it.gpu_kernels += " (this build has no GPU kernels: nvcc was not found when it was made)";
  it.device_allowed = {.aware = question.aware,
                       .copy_engine = sketched && sketched->box,
                       .kernels = sketched && cuda::has_kernels(),
                       .forced = forced_device_method()};
  it.device_choice = chooser.choose_device(it.shape, question.call, question.distance, it.device_allowed);
  it.because = device_because(it);
}

}  // namespace

Result<Explanation> explain(const Question& question) {
  if (question.count < 0) return Error{"count " + std::to_string(question.count) + " is negative; give 0 or more"};
  const auto parsed = parse_type(question.type);
  if (!parsed)
    return Error{"type expression, " + parsed.error().text + "; 'bestride explain --help' shows the language"};
  const auto element = evaluate(*parsed);
  if (!element) return Error{"type expression, " + element.error().text};
  const Built all = make_repeat(element->bytes, question.count, element->extent);
  if (!all)
    return Error{"count " + std::to_string(question.count) +
                 " of this type leaves the 62-bit range; it would be left to MPI"};

  Explanation it;
  it.type = parsed->text();
  it.element = *element;
  it.layout = intern(*all);
  std::optional<std::string> seen;
  const std::int64_t leaf = leaf_bytes(*parsed, seen);
  it.shape = Shape::of(*it.layout, {element->unit_bytes, TypeRepresentation::leaf_of(leaf)});
  it.allowed = allowed_for(it, question, leaf);
  it.kernels = Packer(it.layout).text();

  const UsedProfile used = find_used_profile();
  it.profile = used.name;
  it.profile_problem = used.problem.empty() ? used.limit : used.problem;
  if (question.device) {
    const DeviceCosts& costs = used.profile().device();
    if (costs.measured().stand_in && !costs.calibrated())
      it.profile_problem = "its GPU curves are of a stand-in driver, so the built-in ones are used";
    else if (!costs.calibrated() && used.loaded)
      it.profile_problem = "it has no GPU curves, so the built-in ones are used";
    explain_device(it, question, Chooser(used.profile()));
    return it;
  }
  if (used.loaded && used.loaded->predicts_by_built_in(it.shape.kind, question.call, question.distance))
    it.profile_problem = "it has no measured points of such a shape in such a call, so the built-in ones are used";
  Strategy forced;
  it.engine = is_message(question.call) && question.distance != Distance::self && used.library_known &&
              !it.layout->contiguous() && it.layout->size() != 0 &&
              !parse(Settings::get().text("BESTRIDE_STRATEGY"), &forced);
  if (it.engine) it.allowed.pack = false;
  it.choice = Chooser(used.profile(), Chooser::default_margin, used.library_known)
                  .choose(it.shape, question.call, question.distance, it.allowed);
  it.because = because(it, is_message(question.call) ? Chooser::default_margin : Chooser::local_margin);
  if (it.engine) it.because = "MPICH over UCX asks Bestride to pack and unpack each fragment of such a message";
  apply_forced(it);
  return it;
}

}  // namespace bestride::inline cli
