//! Oracle, random systems and conformance suites.
