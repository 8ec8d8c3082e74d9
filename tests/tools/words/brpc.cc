// A brpc server that counts words, and a client that calls it all the time: for the flame graph of docs/recipes.md.
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include <brpc/channel.h>
#include <brpc/server.h>

#include "count.hh"
#include "words.pb.h"

class Service : public Words
{
    void Count(google::protobuf::RpcController *, const Text *text, Counts *counts, google::protobuf::Closure *done) override
    {
        brpc::ClosureGuard guard(done);
        static thread_local std::mt19937 random(1);
        std::string json = to_json(sort_counts(count_words(make_text(random, text->words()))));
        std::lock_guard<bthread::Mutex> lock(mutex_); // the calls wait for each other here
        last_ = json;
        counts->set_json(json);
    }

    bthread::Mutex mutex_;
    std::string last_;
};

static void call(int port)
{
    brpc::Channel channel;
    Text text;
    text.set_words(2000);
    if (channel.Init("127.0.0.1", port, nullptr) != 0) {
        std::exit(1);
    }
    Words::Stub words(&channel);
    for (;;) {
        brpc::Controller control;
        Counts counts;
        words.Count(&control, &text, &counts, nullptr);
    }
}

int main(int argc, char **argv)
{
    int port = argc > 1 ? std::atoi(argv[1]) : 8000;
    Service service;
    brpc::Server server;
    if (server.AddService(&service, brpc::SERVER_DOESNT_OWN_SERVICE) != 0 || server.Start(port, nullptr) != 0) {
        return 1;
    }
    std::thread(call, port).detach();
    std::thread(call, port).detach();
    server.RunUntilAskedToQuit();
}
