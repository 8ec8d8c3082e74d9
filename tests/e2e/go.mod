module profpull.test/e2e

go 1.19
