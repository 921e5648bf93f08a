// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end-of-job report: text to stderr, JSON to a file. The ledgers of all ranks are sent up the tree of participants
// to rank 0, which writes the report. If a rank does not take part, each of its children in the tree writes a report
// for itself and the ranks below it.
#include "interpose/peers/participants.hpp"
#include "telemetry/report/ledger.hpp"

namespace bestride::inline interpose {

/// Called in MPI_Init by rank 0 if it reports: says so if the file could not be written now, while the user can still
/// name another one.
void check_report_file() noexcept;

/// Called at MPI_Finalize by every rank that reports. On entry `header.ranks` is 1. If a rank has no memory, its lines
/// are missing.
void gather_and_write(const Participants& participants, int rank, ReportHeader& header, Ledger& ledger) noexcept;

}  // namespace bestride::inline interpose
