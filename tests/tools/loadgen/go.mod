module profpull.test/loadgen

go 1.19
