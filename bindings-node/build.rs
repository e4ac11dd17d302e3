//! How an addon is linked on each platform.

fn main() {
    napi_build::setup();
}
