// The examples of RFC 7541 Appendix C: blocks of one connection, what they decode to, and the size of the table afterwards.
import type { Field } from './collected-fields.ts';

export interface HpackExample {
  readonly section: string;
  /** The maximum size of the dynamic table. */
  readonly tableBytes: number;
  readonly blocks: readonly { readonly hex: string; readonly fields: readonly Field[]; readonly tableSize: number }[];
}

export const HPACK_EXAMPLES: readonly HpackExample[] = [
  {
    section: 'C.2.1',
    tableBytes: 4096,
    blocks: [
      {
        hex: '400a637573746f6d2d6b65790d637573746f6d2d686561646572',
        fields: [['custom-key', 'custom-header']],
        tableSize: 55,
      },
    ],
  },
  {
    section: 'C.2.2',
    tableBytes: 4096,
    blocks: [{ hex: '040c2f73616d706c652f70617468', fields: [[':path', '/sample/path']], tableSize: 0 }],
  },
  {
    section: 'C.2.3',
    tableBytes: 4096,
    blocks: [{ hex: '100870617373776f726406736563726574', fields: [['password', 'secret']], tableSize: 0 }],
  },
  {
    section: 'C.2.4',
    tableBytes: 4096,
    blocks: [{ hex: '82', fields: [[':method', 'GET']], tableSize: 0 }],
  },
  {
    section: 'C.3',
    tableBytes: 4096,
    blocks: [
      {
        hex: '828684410f7777772e6578616d706c652e636f6d',
        fields: [
          [':method', 'GET'],
          [':scheme', 'http'],
          [':path', '/'],
          [':authority', 'www.example.com'],
        ],
        tableSize: 57,
      },
      {
        hex: '828684be58086e6f2d6361636865',
        fields: [
          [':method', 'GET'],
          [':scheme', 'http'],
          [':path', '/'],
          [':authority', 'www.example.com'],
          ['cache-control', 'no-cache'],
        ],
        tableSize: 110,
      },
      {
        hex: '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
        fields: [
          [':method', 'GET'],
          [':scheme', 'https'],
          [':path', '/index.html'],
          [':authority', 'www.example.com'],
          ['custom-key', 'custom-value'],
        ],
        tableSize: 164,
      },
    ],
  },
  {
    section: 'C.4',
    tableBytes: 4096,
    blocks: [
      {
        hex: '828684418cf1e3c2e5f23a6ba0ab90f4ff',
        fields: [
          [':method', 'GET'],
          [':scheme', 'http'],
          [':path', '/'],
          [':authority', 'www.example.com'],
        ],
        tableSize: 57,
      },
      {
        hex: '828684be5886a8eb10649cbf',
        fields: [
          [':method', 'GET'],
          [':scheme', 'http'],
          [':path', '/'],
          [':authority', 'www.example.com'],
          ['cache-control', 'no-cache'],
        ],
        tableSize: 110,
      },
      {
        hex: '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf',
        fields: [
          [':method', 'GET'],
          [':scheme', 'https'],
          [':path', '/index.html'],
          [':authority', 'www.example.com'],
          ['custom-key', 'custom-value'],
        ],
        tableSize: 164,
      },
    ],
  },
  {
    section: 'C.5',
    tableBytes: 256,
    blocks: [
      {
        hex: '4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d',
        fields: [
          [':status', '302'],
          ['cache-control', 'private'],
          ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
          ['location', 'https://www.example.com'],
        ],
        tableSize: 222,
      },
      {
        hex: '4803333037c1c0bf',
        fields: [
          [':status', '307'],
          ['cache-control', 'private'],
          ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
          ['location', 'https://www.example.com'],
        ],
        tableSize: 222,
      },
      {
        hex: '88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31',
        fields: [
          [':status', '200'],
          ['cache-control', 'private'],
          ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
          ['location', 'https://www.example.com'],
          ['content-encoding', 'gzip'],
          ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
        ],
        tableSize: 215,
      },
    ],
  },
  {
    section: 'C.6',
    tableBytes: 256,
    blocks: [
      {
        hex: '488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3',
        fields: [
          [':status', '302'],
          ['cache-control', 'private'],
          ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
          ['location', 'https://www.example.com'],
        ],
        tableSize: 222,
      },
      {
        hex: '4883640effc1c0bf',
        fields: [
          [':status', '307'],
          ['cache-control', 'private'],
          ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
          ['location', 'https://www.example.com'],
        ],
        tableSize: 222,
      },
      {
        hex: '88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007',
        fields: [
          [':status', '200'],
          ['cache-control', 'private'],
          ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
          ['location', 'https://www.example.com'],
          ['content-encoding', 'gzip'],
          ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
        ],
        tableSize: 215,
      },
    ],
  },
];
