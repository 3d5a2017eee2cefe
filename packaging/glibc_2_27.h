/* Included before everything where wheels are built (script/package --sysroot): glibc 2.29 gave
 * these functions new versions that leave errno alone, which nothing here reads. With the old ones
 * wheels run on glibc 2.27 and later. The arithmetic behind both is the same.
 *
 * SPDX-License-Identifier: MIT */
#if defined(__x86_64__) && !defined(__ASSEMBLER__)
__asm__(".symver exp, exp@GLIBC_2.2.5\n"
        ".symver exp2, exp2@GLIBC_2.2.5\n"
        ".symver log, log@GLIBC_2.2.5\n"
        ".symver log2, log2@GLIBC_2.2.5\n"
        ".symver pow, pow@GLIBC_2.2.5\n");
#endif
