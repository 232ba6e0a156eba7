"""The app's frame: its name, its pages, and nothing else. Run it with ``make run``."""

from pathlib import Path

import streamlit as st

from core.ui import frame, print_view
from core.ui.scenario import address, record

PLANNER = "pages/planner.py"
PLANNER_ICON = ":material/calculate:"
ICON = Path(__file__).parent / "assets" / "images" / "icon.svg"

st.set_page_config(page_title="LLM inference lab", page_icon=str(ICON), layout="wide")
frame.dress()
with st.sidebar:
    print_view.switch()
page = st.navigation(
    {
        "Tools": [
            st.Page(PLANNER, title="Planner", icon=PLANNER_ICON, default=True, url_path="start"),
            # The first page has no name in its address; who types one finds it all the same.
            st.Page(PLANNER, title="Planner", icon=PLANNER_ICON, visibility="hidden"),
            st.Page("pages/find_deployment.py", title="Find a deployment", icon=":material/travel_explore:"),
            st.Page("pages/lab.py", title="Engine lab", icon=":material/science:"),
            st.Page(
                "pages/predictions.py", title="How good are our predictions?", icon=":material/query_stats:"
            ),
            st.Page("pages/notebook.py", title="Notebook", icon=":material/edit_note:"),
        ],
        "Course": [st.Page("pages/course.py", title="Course map", icon=":material/map:")],
        "I · Why is it slow?": [
            st.Page("pages/one_token.py", title="One token, counted", icon=":material/functions:"),
            st.Page("pages/prefill_and_decode.py", title="Prefill and decode", icon=":material/timeline:"),
            st.Page("pages/inside_a_gpu.py", title="Inside a GPU", icon=":material/developer_board:"),
            st.Page("pages/roofline.py", title="Roofline", icon=":material/roofing:"),
            st.Page("pages/will_it_fit.py", title="Will it fit?", icon=":material/inventory_2:"),
        ],
        "II · The cache": [
            st.Page("pages/kv_cache.py", title="KV cache", icon=":material/memory:"),
            st.Page("pages/sharing_heads.py", title="MHA, MQA, GQA, MLA", icon=":material/share:"),
            st.Page("pages/paged_attention.py", title="PagedAttention", icon=":material/grid_view:"),
        ],
        "III · Fewer bits": [
            st.Page("pages/quantising.py", title="Quantising", icon=":material/grid_on:"),
        ],
        "IV · Many requests": [
            st.Page("pages/batching.py", title="Batching", icon=":material/event_seat:"),
            st.Page("pages/speculative_decoding.py", title="Speculative decoding", icon=":material/bolt:"),
        ],
        "V · Many chips, and money": [
            st.Page("pages/parallelism.py", title="Parallelism", icon=":material/hub:"),
            st.Page(
                "pages/hardware_generations.py", title="Hardware generations", icon=":material/trending_up:"
            ),
        ],
    },
    expanded=True,  # a course is found by looking, not behind a button
)
record.enter(page.url_path or "planner")
page.run()
address.draw()
