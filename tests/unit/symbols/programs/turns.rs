// A library whose functions are inlined, in modules.
#![no_std]

pub mod inner {
    pub struct Wheel<T> {
        pub at: T,
    }

    impl<T: Copy + core::ops::Add<Output = T>> Wheel<T> {
        #[inline(never)]
        pub fn spin(&mut self, by: T) -> T {
            self.at = self.at + by;
            self.at
        }
    }

    #[inline(always)]
    fn twist(x: u64) -> u64 {
        x.rotate_left(13) ^ x.wrapping_mul(0x9e37_79b9)
    }

    #[inline(never)]
    pub fn turn(x: u64) -> u64 {
        let mut w = Wheel { at: twist(x) };
        w.spin(twist(x + 1)) + w.spin(3)
    }
}

#[no_mangle]
pub extern "C" fn turns_all(n: u64) -> u64 {
    (0..n).map(inner::turn).fold(0, u64::wrapping_add)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
