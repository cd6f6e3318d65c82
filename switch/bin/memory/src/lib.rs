//! The memory of our programs and of the Python module: on Linux from jemalloc (tikv-jemallocator), elsewhere the system's.
//!
//! A program that says `use fairlane_memory as _;` allocates from here. See `docs/decisions/huge-pages.md` for why.

#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Puts the program's memory into huge pages: what jemalloc reads before its first allocation, which asks the kernel for them (`madvise`),
/// for its own records, too. A thread of jemalloc's gives back to the kernel what was freed: the thread that freed it may have nothing more to do.
#[macro_export]
macro_rules! huge_pages {
    () => {
        #[cfg(target_os = "linux")]
        #[allow(unsafe_code)]
        // SAFETY: a C string, which ends with its null, and lives as long as the program.
        #[unsafe(export_name = "_rjem_malloc_conf")]
        static CONF: Option<&'static std::ffi::c_char> = Some(unsafe {
            &*c"thp:always,metadata_thp:always,background_thread:true,max_background_threads:1,dirty_decay_ms:1000,muzzy_decay_ms:0"
                .as_ptr()
        });
    };
}
