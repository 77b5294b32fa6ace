//! Tests of sizes; `tests/cli/graphite_api.rs` decodes images.

use super::*;

#[test]
fn sizes_are_limited() {
    let size = |width, height| {
        let request = ImageRequest::new([width, height]);
        request.map(|request| (request.width, request.height))
    };
    assert_eq!(size(None, None), Ok((330, 250)));
    assert_eq!(size(Some(800), Some(4096)), Ok((800, 4096)));
    for side in [0, 79, 4097, usize::MAX] {
        assert!(size(Some(side), None).unwrap_err().contains("use 80 to 4096 pixels"));
    }
}
