module profpull.test/image

go 1.19
