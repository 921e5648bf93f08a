// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/options.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <sstream>
#include <string_view>

namespace bestride::inline perfmodel {

Result<MeasureOptions> parse_options(int argc, char** argv) {
  static const std::map<std::string_view, MeasuredPart> parts{{"messages", MeasuredPart::messages},
                                                              {"links", MeasuredPart::links},
                                                              {"collectives", MeasuredPart::collectives},
                                                              {"exchange", MeasuredPart::exchange},
                                                              {"one-node", MeasuredPart::one_node}};
  MeasureOptions options;
  const auto part = argc > 1 ? parts.find(argv[1]) : parts.end();
  if (part == parts.end())
    return Error{"the first argument must be messages, links, collectives, exchange or one-node"};
  options.part = part->second;
  bool quick = false, thorough = false, gpu = false, no_gpu = false;
  std::string budget, bytes, only, near;
  const std::map<std::string_view, bool*> flags{{"--quick", &quick},
                                                {"--thorough", &thorough},
                                                {"--restart", &options.restart},
                                                {"--restarted", &options.restarted},
                                                {"--gpu", &gpu},
                                                {"--no-gpu", &no_gpu}};
  const std::map<std::string_view, std::string*> texts{{"--state", &options.state},
                                                       {"--budget", &budget},
                                                       {"--only", &only},
                                                       {"--near", &near},
                                                       {"--preload", &options.preload},
                                                       {"--profile", &options.profile},
                                                       {"--rails", &options.rails},
                                                       {"--candidates", &options.candidates},
                                                       {"--bytes", &bytes}};
  for (int i = 2; i < argc; ++i) {
    if (const auto flag = flags.find(argv[i]); flag != flags.end())
      *flag->second = true;
    else if (const auto text = texts.find(argv[i]); text != texts.end() && i + 1 < argc)
      *text->second = argv[++i];
    else
      return Error{"unknown argument or missing value: '" + std::string(argv[i]) + "'"};
  }
  if (options.state.empty() && options.part != MeasuredPart::exchange && options.part != MeasuredPart::one_node)
    return Error{"--state FILE is missing"};
  options.depth = quick ? Depth::quick : thorough ? Depth::thorough : Depth::standard;
  if (!budget.empty()) options.budget_s = std::atof(budget.c_str());
  if (!bytes.empty()) options.bytes = std::atoll(bytes.c_str());
  if (!near.empty()) {
    const auto named = [&near](Distance distance) { return name(distance) == near; };
    const auto* const found = std::find_if(std::begin(near_distances), std::end(near_distances), named);
    if (found == std::end(near_distances)) return Error{"--near must be cache, domain or socket, not '" + near + "'"};
    options.near = *found;
  }
  std::istringstream words(only);
  for (std::string word; std::getline(words, word, ',');) {
    CallKind call;
    if (word == "gpu")
      gpu = true;
    else if (parse(word, &call))
      options.calls.push_back(call);
    else
      return Error{"unknown call kind '" + word + "'; known are pack, unpack, send, receive, isend, irecv, gpu"};
  }
  if (!only.empty()) options.messages = !options.calls.empty();
  if (gpu)
    options.gpu = MeasureOptions::Gpu::required;
  else if (no_gpu || !only.empty())
    options.gpu = MeasureOptions::Gpu::no;
  return options;
}

}  // namespace bestride::inline perfmodel
