// SPDX-License-Identifier: Apache-2.0
    .section .rodata
    .balign 64
    .hidden bestride_gpu_image
    .globl bestride_gpu_image
    .type bestride_gpu_image, %object
bestride_gpu_image:
    .incbin BESTRIDE_GPU_IMAGE
    .byte 0
    .size bestride_gpu_image, . - bestride_gpu_image
    .section .note.GNU-stack, "", %progbits
