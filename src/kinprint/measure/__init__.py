"""Pure arithmetic: arrays in, numbers out. Knows no model, no tensor name and no file.

Plain functions give floats, NaN where the formula has no answer; `measures.measure` wraps
any of them by name and says why there is none. Sums run in float64 over blocks, so that a
large matrix is never copied whole into double precision.
"""
