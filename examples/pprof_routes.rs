//! Profiles of a Rust program over HTTP, one request at a time, without a crate:
//!
//!     GET /debug/pprof/profile?seconds=N     CPU, by gperftools
//!     GET /debug/pprof/heap                  what is allocated, by jemalloc
//!
//! Debian: apt-get install libgoogle-perftools-dev libjemalloc-dev
//!
//!     mod pprof_routes;
//!     pprof_routes::serve("127.0.0.1:6064")?;
//!
//!     MALLOC_CONF=prof:true ./app
//!
//! For editions up to 2021; the two libraries are named below, so neither rustc nor cargo needs a flag. jemalloc
//! replaces malloc, which is what Rust's default allocator calls. Nothing here asks who is there: listen on
//! an address that only profpull reaches.

use std::ffi::{c_void, CString};
use std::io::{Error, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::raw::{c_char, c_int};
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;
use std::{env, fs, process, thread};

#[link(name = "profiler")]
extern "C" {
    fn ProfilerStart(file: *const c_char) -> c_int;
    fn ProfilerStop();
}

#[link(name = "jemalloc")]
extern "C" {
    fn mallctl(
        name: *const c_char,
        old: *mut c_void,
        old_size: *mut usize,
        new: *mut c_void,
        new_size: usize,
    ) -> c_int;
}

fn cpu(file: &CString, request: &str) -> bool {
    let digits = request.split("seconds=").nth(1).unwrap_or("");
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let seconds = digits[..end].parse().unwrap_or(10);
    if unsafe { ProfilerStart(file.as_ptr()) } == 0 {
        return false;
    }
    thread::sleep(Duration::from_secs(seconds));
    unsafe { ProfilerStop() };
    true
}

fn heap(file: &CString) -> bool {
    let mut name = file.as_ptr();
    let new = &mut name as *mut _ as *mut c_void;
    let dump = b"prof.dump\0".as_ptr() as *const c_char;
    unsafe {
        mallctl(
            dump,
            null_mut(),
            null_mut(),
            new,
            std::mem::size_of::<*const c_char>(),
        ) == 0
    }
}

fn answer(mut client: TcpStream, path: &Path) -> Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(10)))?;
    client.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut bytes = [0; 4096];
    let n = client.read(&mut bytes)?;
    let request = String::from_utf8_lossy(&bytes[..n]);
    let file = CString::new(path.to_str().ok_or_else(Error::last_os_error)?)?;
    let done = if request.starts_with("GET /debug/pprof/profile") {
        Some(cpu(&file, &request))
    } else if request.starts_with("GET /debug/pprof/heap") {
        Some(heap(&file))
    } else {
        None
    };
    let (status, body) = match done {
        Some(true) => ("200 OK", fs::read(path)?),
        Some(false) => ("503 Service Unavailable", Vec::new()),
        None => ("404 Not Found", Vec::new()),
    };
    write!(
        client,
        "HTTP/1.1 {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        status,
        body.len()
    )?;
    client.write_all(&body)
}

/// Call this once: a thread answers at the address from then on.
pub fn serve(address: &str) -> Result<()> {
    let server = TcpListener::bind(address)?;
    thread::spawn(move || {
        let path = env::temp_dir().join(format!("profile.{}", process::id()));
        for client in server.incoming().flatten() {
            // A client that went away is no reason to end.
            let _ = answer(client, &path);
            let _ = fs::remove_file(&path);
        }
    });
    Ok(())
}
