module profpull.test/deltaref

go 1.19

require github.com/google/pprof v0.0.0
