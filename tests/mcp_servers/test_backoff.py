from satchel.mcp_servers.backoff import Backoff


def test_pauses_get_longer_up_to_half_a_minute_until_something_succeeds():
    pauses = Backoff()
    for longest in (0.1, 0.2, 0.4, 0.8):
        assert longest / 2 <= pauses.next() <= longest
    for _ in range(20):
        last = pauses.next()
    assert 15 <= last <= 30
    pauses.reset()
    assert pauses.next() <= 0.1
