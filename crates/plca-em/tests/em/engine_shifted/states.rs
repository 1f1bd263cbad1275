//! What fitted states are and say, and what is refused.
