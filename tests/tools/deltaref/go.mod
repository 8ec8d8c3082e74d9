module profpull.test/deltaref

go 1.19
