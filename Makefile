# The front door. CMake and Ninja do the work; the presets are in CMakePresets.json.
#
#   make          builds build/prony
#   make cuda     the same with the CUDA plugin, also where there is no GPU (nvcc takes minutes)
#   make install  puts it into /usr/local (PREFIX=FOLDER: elsewhere; DESTDIR=FOLDER: for a package)
#   make start    from a fresh system to results in a browser (PORT=N: not at 8080; 0: any that is free)
#   make test     from a fresh system to every check there is; the last line counts them
#   make slow     the tests that take minutes each, by hand (TESTS='NAME …': these only)
#   make format   formats the sources
#   make docs     brings the generated parts of docs/ up to date
#   make clean    removes every build
#   make debug | asan | tsan | fuzz | gcc | clang | bare | aarch64     builds build-NAME

.PHONY: all cuda install start test slow format docs clean debug asan tsan fuzz gcc clang bare aarch64

all:
	cmake --preset release
	cmake --build build --target program

cuda:
	cmake --preset release -DPRONY_CUDA=ON
	cmake --build build --target program

PREFIX ?= /usr/local
install: all
	cmake --install build --prefix $(PREFIX)

start:
	@tools/start $(if $(PORT),--port $(PORT))

test:
	tools/setup test
	tools/test

slow: all
	tools/slow $(TESTS)

format:
	find $(wildcard src tests include) -name node_modules -prune -o \
	    \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -print | xargs clang-format -i

docs:
	tools/docs

clean:
	rm -rf build build-*

debug asan tsan fuzz gcc clang bare aarch64:
	cmake --preset $@
	cmake --build build-$@
