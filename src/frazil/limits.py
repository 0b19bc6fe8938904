"""Every bound, with its unit in its name. Going over one is the caller's error and is said so, before any effect."""

from __future__ import annotations

# -- HTTP
header_bytes_max = 16 * 1024
header_count_max = 100
header_read_s = 10
body_read_s = 30
handler_s = 60
idle_connection_s = 75
body_bytes_max = 8 * 1024 * 1024
inflated_bytes_max = 16 * 1024 * 1024
inflate_ratio_max = 20
requests_in_flight_max = 512

# -- JSON
json_depth_max = 64
json_string_bytes_max = 1024 * 1024

# -- names and what hangs on them
namespace_levels_max = 16
name_bytes_max = 255
location_chars_max = 1024
properties_max = 10_000
property_bytes_max = 64 * 1024
tags_max = 100

# -- a commit
updates_max = 10_000
metadata_bytes_max = 256 * 1024 * 1024
tries_max = 12

# -- a listing
page_max = 1_000

# -- the registry
head_changes_max = 256
head_bytes_max = 64 * 1024
range_entries_max = 512
registry_rounds_max = 60
batch_max = 64

# -- idempotency
key_lifetime_ms = 3_600_000
key_grace_ms = 24 * 3_600_000
key_ahead_ms = 5 * 60_000
lease_ms = 3_000
wait_ms = 5_000
poll_ms = 100

# -- the store
store_deadline_ms = 15_000
store_attempt_s = 5

# -- caches, in this process
metadata_cache_bytes = 64 * 1024 * 1024
pointer_cache_entries = 20_000
range_cache_entries = 512

assert lease_ms < wait_ms < store_deadline_ms < handler_s * 1000
assert key_lifetime_ms <= key_grace_ms
