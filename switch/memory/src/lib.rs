//! The memory of our programs, from jemalloc (tikv-jemallocator) and in huge pages.
//!
//! A program that says `use fairlane_memory as _;` allocates from here. See `docs/decisions/huge-pages.md` for why.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static MEMORY: Jemalloc = Jemalloc;

/// What jemalloc reads before its first allocation: it asks the kernel for huge pages (`madvise`), for its own records, too.
// SAFETY: a C string, which ends with its null, and lives as long as the program.
#[unsafe(export_name = "_rjem_malloc_conf")]
static CONF: Option<&'static std::ffi::c_char> = Some(unsafe { &*c"thp:always,metadata_thp:always".as_ptr() });
