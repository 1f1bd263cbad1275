//! Matrices that claim more entries than they hold.

/// Every text made from the JSON of a state by replacing one of its matrices with one whose number of entries is 0 only without
/// the carry. None of them is to be read.
///
/// ```
/// let state = r#"{"w":[[0.5,0.5],2,1],"weights":[[1.0],1,null]}"#;
/// let claims = plca_tensor::strategies::overclaimed(state);
/// assert_eq!(claims[0], r#"{"w":[[],2,9223372036854775808],"weights":[[1.0],1,null]}"#);
/// assert_eq!(claims[1], r#"{"w":[[],9223372036854775808,2],"weights":[[1.0],1,null]}"#);
/// assert_eq!(claims.len(), 2);                                        // a vector has one size
/// ```
pub fn overclaimed(json: &str) -> Vec<String> {
    let mut claims = Vec::new();
    for (end, _) in json.match_indices("],") {
        let (Some(begin), Some(rest)) = (json[..end].rfind('['), json[end + 2..].split_once(']'))
        else {
            continue;
        };
        let sizes: Vec<_> = rest.0.split(',').map(str::parse::<usize>).collect();
        if let [Ok(_), Ok(_)] = sizes[..] {
            for sizes in ["2,9223372036854775808", "9223372036854775808,2"] {
                claims.push(format!("{}[],{sizes}]{}", &json[..begin], rest.1));
            }
        }
    }
    claims
}
