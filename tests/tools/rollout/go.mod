module profpull.test/rollout

go 1.19
