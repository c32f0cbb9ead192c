# Toolchain: Debian's cross compiler for 64-bit Arm (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross). What
# it builds runs under qemu-user; the tests do. Libraries are found where Debian installs them for arm64
# beside the system's own (dpkg --add-architecture arm64); those that are not there are left out.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
find_program(QEMU_AARCH64 NAMES qemu-aarch64-static qemu-aarch64)
if(QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${QEMU_AARCH64} -L /usr/aarch64-linux-gnu)
endif()
