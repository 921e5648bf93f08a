// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of the kernel table that every target has: the kernels written without intrinsics.
#include "kernels/cpu/kernel_table.hpp"
#include "kernels/cpu/target/fields.hpp"
#include "kernels/cpu/target/lists.hpp"
#include "kernels/cpu/target/stream.hpp"
#include "kernels/cpu/target/strided.hpp"
#include "kernels/cpu/target/transpose.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

inline constexpr KernelTable common_table() {
  KernelTable table;
  table.block_copy = strided_kernels<CopyMove>("block_copy");
  table.word[0] = strided_kernels<WordMove<1>>("word1");
  table.word[1] = strided_kernels<WordMove<2>>("word2");
  table.word[2] = strided_kernels<WordMove<4>>("word4");
  table.word[3] = strided_kernels<WordMove<8>>("word8");
  table.word[4] = strided_kernels<WordMove<16>>("word16");
  table.word[5] = strided_kernels<WordMove<32>>("word32");
  table.word[6] = strided_kernels<WordMove<64>>("word64");
  table.overlap[0] = strided_kernels<OverlapMove<2>>("overlap2");
  table.overlap[1] = strided_kernels<OverlapMove<4>>("overlap4");
  table.overlap[2] = strided_kernels<OverlapMove<8>>("overlap8");
  table.overlap[3] = strided_kernels<OverlapMove<16>>("overlap16");
  table.overlap[4] = strided_kernels<OverlapMove<32>>("overlap32");
  table.overlap[5] = strided_kernels<OverlapMove<64>>("overlap64");
  table.paced_word[0][0] = paced_kernels<WordMove<4>, 2>("word4.paced2");
  table.paced_word[1][0] = paced_kernels<WordMove<4>, 4>("word4.paced4");
  table.paced_word[0][1] = paced_kernels<WordMove<8>, 2>("word8.paced2");
  table.paced_word[1][1] = paced_kernels<WordMove<8>, 4>("word8.paced4");
  table.paced_word[0][2] = paced_kernels<WordMove<16>, 2>("word16.paced2");
  table.paced_word[1][2] = paced_kernels<WordMove<16>, 4>("word16.paced4");
  table.paced_word[0][3] = paced_kernels<WordMove<32>, 2>("word32.paced2");
  table.paced_word[1][3] = paced_kernels<WordMove<32>, 4>("word32.paced4");
  table.paced_word[0][4] = paced_kernels<WordMove<64>, 2>("word64.paced2");
  table.paced_word[1][4] = paced_kernels<WordMove<64>, 4>("word64.paced4");
  table.paced_overlap[0][0] = strided_kernels<OverlapMove<8>>("overlap8");
  table.paced_overlap[1][0] = paced_kernels<OverlapMove<8>, 2>("overlap8.paced2");
  table.paced_overlap[0][1] = strided_kernels<OverlapMove<16>>("overlap16");
  table.paced_overlap[1][1] = paced_kernels<OverlapMove<16>, 2>("overlap16.paced2");
  table.paced_overlap[0][2] = strided_kernels<OverlapMove<32>>("overlap32");
  table.paced_overlap[1][2] = paced_kernels<OverlapMove<32>, 2>("overlap32.paced2");
  table.wide = strided_kernels<WideMove>("wide");
  table.list_copy = list_kernels<CopyMove>("list.copy");
  table.list_word[0] = list_kernels<WordMove<1>>("list1");
  table.list_word[1] = list_kernels<WordMove<2>>("list2");
  table.list_word[2] = list_kernels<WordMove<4>>("list4");
  table.list_word[3] = list_kernels<WordMove<8>>("list8");
  table.list_word[4] = list_kernels<WordMove<16>>("list16");
  table.list_word[5] = list_kernels<WordMove<32>>("list32");
  table.list_word[6] = list_kernels<WordMove<64>>("list64");
  table.list_overlap[0] = list_kernels<OverlapMove<2>>("list.overlap2");
  table.list_overlap[1] = list_kernels<OverlapMove<4>>("list.overlap4");
  table.list_overlap[2] = list_kernels<OverlapMove<8>>("list.overlap8");
  table.list_overlap[3] = list_kernels<OverlapMove<16>>("list.overlap16");
  table.list_overlap[4] = list_kernels<OverlapMove<32>>("list.overlap32");
  table.list_overlap[5] = list_kernels<OverlapMove<64>>("list.overlap64");
  table.list_wide = list_kernels<WideMove>("list.wide");
  table.transpose[0] = transpose_kernels<WordMove<1>>("transpose1");
  table.transpose[1] = transpose_kernels<WordMove<2>>("transpose2");
  table.transpose[2] = transpose_kernels<WordMove<4>>("transpose4");
  table.transpose[3] = transpose_kernels<WordMove<8>>("transpose8");
  table.transpose[4] = transpose_kernels<WordMove<16>>("transpose16");
  table.transpose[5] = transpose_kernels<WordMove<32>>("transpose32");
  table.transpose_overlap[0] = transpose_kernels<OverlapMove<2>>("transpose.overlap2");
  table.transpose_overlap[1] = transpose_kernels<OverlapMove<4>>("transpose.overlap4");
  table.transpose_overlap[2] = transpose_kernels<OverlapMove<8>>("transpose.overlap8");
  table.transpose_overlap[3] = transpose_kernels<OverlapMove<16>>("transpose.overlap16");
  table.transpose_overlap[4] = transpose_kernels<OverlapMove<32>>("transpose.overlap32");
  table.fields = {"record.fields", fields<true>, fields<false>};
  table.sorted_list = {"list.sorted", sorted_list<true>, sorted_list<false>};
  table.fixed[0] = strided_kernels<WordMove<128>>("wide128");
  table.fixed[1] = strided_kernels<WordMove<192>>("wide192");
  table.fixed[2] = strided_kernels<WordMove<256>>("wide256");
  table.stream = stream;
  table.stream_fence = stream_fence;
  table.list_mixed = {"list.mixed", mixed_list<true>, mixed_list<false>};
  return table;
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
