// A brpc server that counts words, and a client that calls it all the time: for the flame graph of docs/recipes.md.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <brpc/channel.h>
#include <brpc/server.h>

#include "words.pb.h"

using WordCount = std::pair<std::string, int>;

static std::string make_text(int words)
{
    static thread_local std::mt19937 random(1);
    std::string text;
    std::geometric_distribution<int> word(0.002);
    for (int i = 0; i < words; i++) {
        text += "word" + std::to_string(word(random)) + (i % 9 == 8 ? ".\n" : " ");
    }
    return text;
}

static std::map<std::string, int> count_words(const std::string &text)
{
    std::map<std::string, int> counts;
    std::istringstream in(text);
    for (std::string word; in >> word;) {
        counts[word]++;
    }
    return counts;
}

static std::vector<WordCount> sort_counts(const std::map<std::string, int> &counts)
{
    std::vector<WordCount> sorted(counts.begin(), counts.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const WordCount &a, const WordCount &b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
    return sorted;
}

static std::string to_json(const std::vector<WordCount> &counts)
{
    std::ostringstream out;
    for (const WordCount &c : counts) {
        out << "{\"word\": \"" << c.first << "\", \"count\": " << c.second << "}\n";
    }
    return out.str();
}

class Service : public Words
{
    void Count(google::protobuf::RpcController *, const Text *text, Counts *counts, google::protobuf::Closure *done) override
    {
        brpc::ClosureGuard guard(done);
        std::string json = to_json(sort_counts(count_words(make_text(text->words()))));
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
