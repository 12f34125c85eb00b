"""The verbs of the package, such as `kinprint.compare`: from names of models to results.

Each composes the rooms below and returns a result of `report.results`. They are exported by
`kinprint` itself, where everything public is; the command line and users call them there.

    reader     Reader: one budget, one cache, one set of connections for several calls
    model      Model: what `open` gives, tensors asked for by meaning
    opening    open, inspect, plan_inspection, plan
    comparing  compare, matrix, plan_comparison
    studying   study, list_studies, find_study, list_measures, plan_study; reproducing: reproduce
    reports    report
    caching    cached, clear_cache; extending: installed_extensions
"""
