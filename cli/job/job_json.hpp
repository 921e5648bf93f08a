// SPDX-License-Identifier: Apache-2.0
#pragma once
// A job as JSON. docs/where.md describes the members.
#include <cstdint>
#include <vector>

#include "cli/job/job_stacks.hpp"
#include "cli/job/job_view.hpp"
#include "telemetry/report/json_writer.hpp"

namespace bestride::inline cli {

/// An object. `calls`: finished calls of each thread that are written. `stacks`: of the job, or null.
void write_job(JsonWriter& json, const JobView& view, std::size_t calls, const JobStacks* stacks);
/// A member: an array of numbers.
void write_ranks(JsonWriter& json, const char* name, const std::vector<std::int32_t>& ranks);

}  // namespace bestride::inline cli
